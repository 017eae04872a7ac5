package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/config"
)

// client is that of any program on h1.
func (f *ownersFleet) client() *clientv3.Client {
	f.t.Helper()
	s := DefaultSettings()
	if err := config.Load(filepath.Join(f.dir, "h1", "suffrage.yaml"), &s); err != nil {
		f.t.Fatal(err)
	}
	client, err := s.Etcd.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { client.Close() })
	return client
}

func writeKey(n int) string { return fmt.Sprintf("/test/%06d", n) }

// write writes all the time, each key until it is answered. What it gives stops
// that and reads everything back.
func (f *ownersFleet) write() func() {
	f.t.Helper()
	client := f.client()
	done, stopped := make(chan struct{}), make(chan int)
	var once sync.Once
	f.t.Cleanup(func() { once.Do(func() { close(done); <-stopped }) })
	go func() {
		n := 0
		defer func() { stopped <- n }()
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			if _, err := client.Put(ctx, writeKey(n), fmt.Sprint(n)); err == nil {
				n++ // else it is tried again
			}
			cancel()
		}
	}()
	return func() {
		f.t.Helper()
		var n int
		once.Do(func() { close(done); n = <-stopped })
		g, err := client.Get(f.t.Context(), "/test/", clientv3.WithPrefix())
		if err != nil {
			f.t.Fatal(err)
		}
		read := map[string]string{}
		for _, kv := range g.Kvs {
			read[string(kv.Key)] = string(kv.Value)
		}
		for i := range n {
			if read[writeKey(i)] != fmt.Sprint(i) {
				f.t.Fatalf("write %d of %d is lost: %q", i, n, read[writeKey(i)])
			}
		}
		f.t.Logf("%d writes, none lost", n)
	}
}
