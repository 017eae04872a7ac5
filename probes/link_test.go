package probes_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"suffrage/fitness"
	"suffrage/probes"
)

func TestReadLink(t *testing.T) {
	root := plant(t, "laptop.tree")
	for _, tt := range []struct {
		why  string
		want fitness.Link
	}{
		{"no device below it", fitness.Link{Class: fitness.Virtual, Device: "lo"}},
		{"phy80211", fitness.Link{Class: fitness.Wifi, Device: "wlp0s20f3"}},
		{"the wireless folder; the name means nothing", fitness.Link{Class: fitness.Wifi, Device: "eth1"}},
		{"an Ethernet adapter on USB", fitness.Link{Class: fitness.Wired, Device: "enx00e04c680001"}},
		{"a modem", fitness.Link{Class: fitness.Cellular, Device: "wwan0"}},
		{"Tailscale over the dock, whose route is preferred", fitness.Link{Class: fitness.Wired, Device: "tailscale0", Note: "tailscale0 over enx00e04c680001"}},
		{"WireGuard the same", fitness.Link{Class: fitness.Wired, Device: "wg0", Note: "wg0 over enx00e04c680001"}},
		{"a bridge is no overlay", fitness.Link{Class: fitness.Virtual, Device: "br0"}},
	} {
		got, err := probes.ReadLink(root, tt.want.Device)
		if err != nil {
			t.Errorf("%s: %v", tt.want.Device, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.why, diff)
		}
	}

	put(t, root, `proc/net/route = Iface\tDestination\nwlp0s20f3 00000000 0101A8C0 0003 0 0 600 00000000 0 0 0\n`)
	if got, err := probes.ReadLink(root, "tailscale0"); err != nil || got.Class != fitness.Wifi {
		t.Errorf("undocked: %+v, %v, want wifi", got, err)
	}
	put(t, root, `proc/net/route = Iface\tDestination\ntailscale0 00000000 0101A8C0 0003 0 0 1 00000000 0 0 0\n`)
	if got, err := probes.ReadLink(root, "tailscale0"); err != nil || got.Class != fitness.Virtual || got.Note == "" {
		t.Errorf("the overlay carries the default route: %+v, %v, want virtual and a note", got, err)
	}
}

func TestReadLinkRefuses(t *testing.T) {
	root := plant(t, "laptop.tree")
	for _, tt := range []struct{ why, device, want string }{
		{"a plain file among the devices", "bonding_masters", "is a file"},
		{"a link that leads nowhere", "gone0", "went away"},
		{"no such device", "eth7", "went away"},
		{"a name that would leave the folder", "../../devices", "no network device"},
		{"no name", "", "no network device"},
	} {
		if l, err := probes.ReadLink(root, tt.device); err == nil || !strings.Contains(err.Error(), tt.want) || l.Class != fitness.UnknownLink {
			t.Errorf("%s: %+v, %v, want unknown and %q", tt.why, l, err, tt.want)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "127.0.7.101"} {
		if d, err := probes.DeviceOf(netip.MustParseAddr(addr)); err != nil || d != "lo" {
			t.Errorf("%s: %q, %v, want lo", addr, d, err)
		}
	}
	if d, err := probes.DeviceOf(netip.MustParseAddr("192.0.2.77")); err == nil || !strings.Contains(err.Error(), "192.0.2.77") {
		t.Errorf("%q, %v, want an error that names the address", d, err)
	}
}

func TestEveryLinkHere(t *testing.T) {
	names, err := os.ReadDir("/sys/class/net")
	if err != nil {
		t.Skipf("no sysfs: %v", err)
	}
	for _, n := range names {
		if l, err := probes.ReadLink("/", n.Name()); err != nil && n.Name() != "bonding_masters" {
			t.Errorf("%s: %+v, %v", n.Name(), l, err)
		}
	}
}
