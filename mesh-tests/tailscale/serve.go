package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"strconv"
	"syscall"

	"tailscale.com/derp/derpserver"
	"tailscale.com/net/stunserver"
	"tailscale.com/tailcfg"
	"tailscale.com/tstest/integration/testcontrol"
	"tailscale.com/types/key"
)

// controlPort is what mesh-tests/overlay logs in at.
const (
	controlPort = 9911
	relayPort   = 9912
	stunPort    = 3478
)

// serve runs until it is told to end. Every device that asks is let in.
func serve(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	stun := stunserver.New(ctx)
	if err := stun.Listen(net.JoinHostPort(address, strconv.Itoa(stunPort))); err != nil {
		return fmt.Errorf("listen for STUN: %w", err)
	}
	go stun.Serve()

	derp := derpserver.New(key.NewNode(), log.Printf)
	defer derp.Close()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(relayPort)))
	if err != nil {
		return fmt.Errorf("listen for the relay: %w", err)
	}
	relay := httptest.NewUnstartedServer(derpserver.Handler(derp))
	relay.Listener.Close()
	relay.Listener = listener
	// A relay speaks its own protocol after an HTTP/1.1 upgrade.
	relay.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	relay.StartTLS()
	defer relay.Close()

	at := net.JoinHostPort(address, strconv.Itoa(controlPort))
	control := &http.Server{Addr: at, Handler: &testcontrol.Server{
		DERPMap: derpMap(address), ExplicitBaseURL: "http://" + at,
		AllNodesSameUser: true, AllOnline: true, MagicDNSDomain: "lab.example",
	}}
	failed := make(chan error, 1)
	go func() { failed <- control.ListenAndServe() }()
	select {
	case err := <-failed:
		return fmt.Errorf("control server: %w", err)
	case <-ctx.Done():
		return control.Close()
	}
}

// derpMap tells the devices of the one relay.
func derpMap(address string) *tailcfg.DERPMap {
	return &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{1: {
		RegionID: 1, RegionCode: "lab1", RegionName: "lab",
		Nodes: []*tailcfg.DERPNode{{
			Name: "lab1a", RegionID: 1, HostName: address, IPv4: address, IPv6: "none",
			DERPPort: relayPort, InsecureForTests: true,
			STUNPort: stunPort, STUNTestIP: address,
		}},
	}}}
}
