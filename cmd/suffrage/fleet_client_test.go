package main

import (
	"path/filepath"

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
