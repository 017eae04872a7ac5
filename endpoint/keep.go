package endpoint

import (
	"bytes"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The keys of this program, from kept up to keptEnd: marks, the Lease, requests of
// the owner. Whoever writes them changes who votes.
var kept, keptEnd = []byte("/suffrage/"), []byte("/suffrage0")

// keep refuses a write to them, and one that cannot be read. Reading them is no
// matter: nothing in them is secret.
func keep(method string, data []byte) error {
	touches, err := writesKept(method, data)
	switch {
	case err != nil:
		return status.Errorf(codes.InvalidArgument, "suffrage endpoint: %s cannot be read: %v", method, err)
	case touches:
		return status.Errorf(codes.PermissionDenied, "suffrage endpoint: keys under %s are not for clients of the datastore: ask a voter itself, with a certificate of the fleet", kept)
	}
	return nil
}

func writesKept(method string, data []byte) (bool, error) {
	switch method {
	case pb.KV_Put_FullMethodName:
		r := &pb.PutRequest{}
		err := proto.Unmarshal(data, r)
		return in(r.Key, nil), err
	case pb.KV_DeleteRange_FullMethodName:
		r := &pb.DeleteRangeRequest{}
		err := proto.Unmarshal(data, r)
		return in(r.Key, r.RangeEnd), err
	case pb.KV_Txn_FullMethodName:
		r := &pb.TxnRequest{}
		if err := proto.Unmarshal(data, r); err != nil {
			return false, err
		}
		return txn(r, 0)
	}
	return false, nil
}

// maxNested is how deep transactions may lie in each other.
const maxNested = 16

func txn(t *pb.TxnRequest, depth int) (bool, error) {
	if depth > maxNested {
		return false, fmt.Errorf("transactions %d deep in each other", depth)
	}
	for _, ops := range [][]*pb.RequestOp{t.GetSuccess(), t.GetFailure()} {
		for _, o := range ops {
			if p := o.GetRequestPut(); p != nil && in(p.Key, nil) {
				return true, nil
			}
			if d := o.GetRequestDeleteRange(); d != nil && in(d.Key, d.RangeEnd) {
				return true, nil
			}
			if inner := o.GetRequestTxn(); inner != nil {
				if touches, err := txn(inner, depth+1); touches || err != nil {
					return touches, err
				}
			}
		}
	}
	return false, nil
}

// in reports whether some key of a range is kept. As etcd has it: no end is the one
// key, an end of a zero byte is everything from the key on.
func in(key, end []byte) bool {
	switch {
	case len(end) == 0:
		return bytes.HasPrefix(key, kept)
	case len(end) == 1 && end[0] == 0:
		return bytes.Compare(key, keptEnd) < 0
	}
	return bytes.Compare(key, keptEnd) < 0 && bytes.Compare(kept, end) < 0
}
