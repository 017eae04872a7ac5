package endpoint

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func put(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key)}}}
}

func remove(key, end string) *pb.DeleteRangeRequest {
	return &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
}

func within(t *pb.TxnRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: t}}
}

func succeeds(ops ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: ops} }

// TestKeep: what a client may write, and what changes who votes.
func TestKeep(t *testing.T) {
	deep := succeeds(put("/registry/a"))
	for range maxNested + 1 {
		deep = succeeds(within(deep))
	}
	for _, c := range []struct {
		why    string
		method string
		in     proto.Message
		want   codes.Code
	}{
		{"a Kubernetes object", pb.KV_Put_FullMethodName, &pb.PutRequest{Key: []byte("/registry/configmaps/a")}, codes.OK},
		{"a name that begins alike", pb.KV_Put_FullMethodName, &pb.PutRequest{Key: []byte("/suffrages/a")}, codes.OK},
		{"the owner's mark", pb.KV_Put_FullMethodName, &pb.PutRequest{Key: []byte("/suffrage/hosts/h1/mark")}, codes.PermissionDenied},
		{"reading it", pb.KV_Range_FullMethodName, &pb.RangeRequest{Key: []byte("/suffrage/policy")}, codes.OK},
		{"a range of objects", pb.KV_DeleteRange_FullMethodName, remove("/registry/", "/registry0"), codes.OK},
		{"one key of it", pb.KV_DeleteRange_FullMethodName, remove("/suffrage/policy", ""), codes.PermissionDenied},
		{"a range over it", pb.KV_DeleteRange_FullMethodName, remove("/a", "/z"), codes.PermissionDenied},
		{"a range that ends where it begins", pb.KV_DeleteRange_FullMethodName, remove("/a", "/suffrage/"), codes.OK},
		{"a range that begins where it ends", pb.KV_DeleteRange_FullMethodName, remove("/suffrage0", "/z"), codes.OK},
		{"everything", pb.KV_DeleteRange_FullMethodName, remove("\x00", "\x00"), codes.PermissionDenied},
		{"everything after it", pb.KV_DeleteRange_FullMethodName, remove("/suffrage0", "\x00"), codes.OK},
		{"an API server's transaction", pb.KV_Txn_FullMethodName, succeeds(put("/registry/a")), codes.OK},
		{"one that writes a request", pb.KV_Txn_FullMethodName, succeeds(put("/registry/a"), put("/suffrage/request")), codes.PermissionDenied},
		{"in the branch not taken", pb.KV_Txn_FullMethodName, &pb.TxnRequest{Failure: []*pb.RequestOp{put("/suffrage/request")}}, codes.PermissionDenied},
		{"in one that lies in another", pb.KV_Txn_FullMethodName, succeeds(within(succeeds(put("/suffrage/request")))), codes.PermissionDenied},
		{"too deep to be looked at", pb.KV_Txn_FullMethodName, deep, codes.InvalidArgument},
	} {
		data, err := proto.Marshal(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := status.Code(keep(c.method, data)); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
	if got := status.Code(keep(pb.KV_Put_FullMethodName, []byte{0xff})); got != codes.InvalidArgument {
		t.Errorf("what cannot be read: %v", got)
	}
}

// FuzzKeep: whatever comes, it does not panic, and what it lets through has no key
// of ours where etcd would read one.
func FuzzKeep(f *testing.F) {
	for _, m := range []proto.Message{succeeds(put("/suffrage/request")), succeeds(within(succeeds(put("/registry/a")))), &pb.PutRequest{Key: []byte("/suffrage/x")}} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = keep(pb.KV_Txn_FullMethodName, data)
		_ = keep(pb.KV_DeleteRange_FullMethodName, data)
		if keep(pb.KV_Put_FullMethodName, data) != nil {
			return
		}
		r := &pb.PutRequest{}
		if err := proto.Unmarshal(data, r); err != nil || len(r.Key) >= len(kept) && string(r.Key[:len(kept)]) == string(kept) {
			t.Errorf("%v let through: %v", r, err)
		}
	})
}
