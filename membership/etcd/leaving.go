package etcd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Leaving are the members whose removal is asked for by annotation, for those that
// lead clients to members. It is read from the member's own store: whoever asks has
// just heard something newer from it. What cannot be read asks for nothing.
func Leaving(ctx context.Context, kv pb.KVClient) (map[uint64]bool, error) {
	g, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(hostsPrefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(hostsPrefix)), Limit: 2 * maxMarks, Serializable: true})
	if err != nil {
		return nil, fmt.Errorf("etcd: read removals: %w", err)
	}
	out := map[uint64]bool{}
	for _, kv := range g.Kvs {
		if !strings.HasSuffix(string(kv.Key), removeSuffix) {
			continue
		}
		a, err := readAnnotation(kv.Value)
		if err != nil || a.Refused != "" {
			continue
		}
		if id, err := strconv.ParseUint(a.Member, 16, 64); err == nil {
			out[id] = true
		}
	}
	return out, nil
}
