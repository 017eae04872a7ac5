package main

import (
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// network is how the addresses of the hosts begin: 127.0.1. where no other fleet
// stands.
func (f *ownersFleet) network() string {
	f.t.Helper()
	u, err := url.Parse(f.settings("h1").Etcd.Endpoints[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSuffix(u.Hostname(), "1")
}

// client is that of any program on h1.
func (f *ownersFleet) client() *clientv3.Client {
	f.t.Helper()
	client, err := f.settings("h1").Etcd.Client()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { client.Close() })
	return client
}
