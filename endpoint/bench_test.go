package endpoint

import (
	"context"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"suffrage/member/membertest"
)

// BenchmarkLead is what the way through an endpoint adds to a request, with TLS on
// every connection as on a real host: a read and a write to the leader itself and
// through the endpoint, in turn, so that whatever else the machine does befalls both.
func BenchmarkLead(b *testing.B) {
	c := membertest.New(b, membertest.Options{Size: 1, TLS: true})
	o, _ := options(b, c)
	o.TLS = TLS{CA: c.CA, Cert: c.Cert, Key: c.Key}
	f := &fleet{Cluster: c, t: b, o: o}
	f.start()
	f.leads("it leads", anywhere)
	bare, through := f.kv(c.Members[0].Address.String()+":2379"), f.kv(o.Config.Listen)
	for name, call := range map[string]func(pb.KVClient) error{
		"read": func(k pb.KVClient) error {
			_, err := k.Range(context.Background(), &pb.RangeRequest{Key: []byte("k")})
			return err
		},
		"write": func(k pb.KVClient) error {
			_, err := k.Put(context.Background(), &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 1024)})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				for i, k := range []pb.KVClient{bare, through} {
					began := time.Now()
					if err := call(k); err != nil {
						b.Fatal(err)
					}
					took[i] = append(took[i], time.Since(began))
				}
			}
			var median [2]float64
			for i := range took {
				slices.Sort(took[i])
				median[i] = float64(took[i][len(took[i])/2].Microseconds())
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median[0], "µs-bare")
			b.ReportMetric(median[1], "µs-through")
			b.ReportMetric(median[1]/median[0], "ratio")
		})
	}
}

// kv is a client at an address.
func (f *fleet) kv(at string) pb.KVClient {
	f.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(credentials.NewTLS(f.shows(pair(f.t, f.Cert, f.Key)))))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return pb.NewKVClient(conn)
}
