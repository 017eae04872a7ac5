package probes

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"

	"suffrage/fitness"
)

// DeviceOf finds the network device that holds a host's mesh address. An
// address of 127.0.0.0/8 lies on the loopback device without being listed.
func DeviceOf(addr netip.Addr) (string, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("probes: link: list network devices: %w", err)
	}
	for _, d := range devices {
		addrs, err := d.Addrs()
		if err != nil {
			return "", fmt.Errorf("probes: link: addresses of %s: %w", d.Name, err)
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			if p.Addr().Unmap() == addr || addr.IsLoopback() && p.Contains(addr) {
				return d.Name, nil
			}
		}
	}
	return "", fmt.Errorf("probes: link: no network device holds the mesh address %s: is the mesh up, and is the roster's address of this host right?", addr)
}

// ReadLink gives the class of a device, from sysfs below root. A device of an
// overlay network (Tailscale, WireGuard) is classed by the device that carries
// the default route, where procfs tells, and noted so: what carries the packets
// is what sleeps and fades.
func ReadLink(root, device string) (fitness.Link, error) {
	class, err := classOf(root, device)
	if err != nil {
		return fitness.Link{Class: fitness.UnknownLink, Device: device}, err
	}
	l := fitness.Link{Class: class, Device: device}
	if class != fitness.Virtual || !isOverlay(root, device) {
		return l, nil
	}
	under, err := defaultRoute(root)
	if err != nil || under == device {
		l.Note = device + " is an overlay; what carries it is not known"
		return l, nil
	}
	if class, err = classOf(root, under); err != nil {
		l.Note = fmt.Sprintf("%s is an overlay over %s, whose class is not known", device, under)
		return l, nil
	}
	l.Class, l.Note = class, device+" over "+under
	return l, nil
}

// classOf resolves one link and never recurses: following sysfs's links runs in
// circles. Names mean nothing (wlan0 can be anything); phy80211 is always there
// for today's wireless stack, the wireless folder is an optional kernel feature,
// and either is enough.
func classOf(root, device string) (fitness.LinkClass, error) {
	// A device's name can hold neither; this one may come from elsewhere.
	if device == "" || device == "." || device == ".." || strings.ContainsAny(device, "/\x00") {
		return fitness.UnknownLink, fmt.Errorf("probes: link: %q is no network device", device)
	}
	dir := filepath.Join(root, "sys/class/net", device)
	info, err := os.Stat(dir) // resolves the one link
	if errors.Is(err, fs.ErrNotExist) {
		return fitness.UnknownLink, fmt.Errorf("probes: link: %s is not there: the device %s went away, or sysfs is not mounted", dir, device)
	}
	if err != nil {
		return fitness.UnknownLink, fmt.Errorf("probes: link: %w", err)
	}
	if !info.IsDir() {
		// bonding_masters is a plain file among the devices.
		return fitness.UnknownLink, fmt.Errorf("probes: link: %s is a file, not a device", dir)
	}
	uevent := devtype(dir)
	switch {
	case exists(dir, "phy80211"), exists(dir, "wireless"), uevent == "wlan":
		return fitness.Wifi, nil
	case uevent == "wwan":
		return fitness.Cellular, nil
	case !exists(dir, "device"):
		return fitness.Virtual, nil
	}
	return fitness.Wired, nil
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// devtype is DEVTYPE from the device's uevent, empty for plain Ethernet.
func devtype(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "uevent"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			return v
		}
	}
	return ""
}

// isOverlay tells tunnels from bridges and lo: Tailscale's and most VPNs' device
// is a tun, WireGuard's says so.
func isOverlay(root, device string) bool {
	dir := filepath.Join(root, "sys/class/net", device)
	return exists(dir, "tun_flags") || devtype(dir) == "wireguard"
}

// defaultRoute is the device of the default route with the lowest metric. Only
// IPv4 is looked at: a host with a mesh over IPv6 alone gets the note instead.
func defaultRoute(root string) (string, error) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return "", fmt.Errorf("probes: link: %w", err)
	}
	routes, err := proc.NetRoute()
	if err != nil {
		return "", fmt.Errorf("probes: link: %w", err)
	}
	const up = 1 // RTF_UP
	var best *procfs.NetRouteLine
	for i, r := range routes {
		if r.Destination == 0 && r.Mask == 0 && r.Flags&up != 0 && (best == nil || r.Metric < best.Metric) {
			best = &routes[i]
		}
	}
	if best == nil {
		return "", errors.New("probes: link: no default route")
	}
	return best.Iface, nil
}
