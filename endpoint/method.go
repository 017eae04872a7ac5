package endpoint

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// kind is how a method is led.
type kind int

const (
	read    kind = iota + 1 // one request, one answer, from any voter
	write                   // one request, one answer, proposed by the leader
	pages                   // one request, many answers, and an end
	endless                 // both ways for as long as both like
)

// methods are all that a client may call: what an API server and K3s use of etcd.
// Whoever wants the members, alarms, users or a snapshot goes to a voter, with a
// certificate of the fleet.
var methods = map[string]kind{
	pb.KV_Range_FullMethodName:              read,
	pb.KV_RangeStream_FullMethodName:        pages,
	pb.KV_Put_FullMethodName:                write,
	pb.KV_DeleteRange_FullMethodName:        write,
	pb.KV_Txn_FullMethodName:                write,
	pb.KV_Compact_FullMethodName:            write,
	pb.Watch_Watch_FullMethodName:           endless,
	pb.Lease_LeaseGrant_FullMethodName:      write,
	pb.Lease_LeaseRevoke_FullMethodName:     write,
	pb.Lease_LeaseKeepAlive_FullMethodName:  endless,
	pb.Lease_LeaseTimeToLive_FullMethodName: read,
	pb.Lease_LeaseLeases_FullMethodName:     read,
	pb.Maintenance_Status_FullMethodName:    read,
}
