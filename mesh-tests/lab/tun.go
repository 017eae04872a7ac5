package lab

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Addresses are 10.77.0.N: N is 1 to 250 for hosts, 254 for the tests' process.
const mtu = 1500

// Address is that of a host by number.
func Address(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(n)}) }

// Observer is the number of the tests' process in its own network.
const Observer = 254

// loopback brings up lo in the namespace of this thread.
func loopback() error { return configure("lo", netip.Addr{}) }

// configure gives a device its address, if any, and brings it up.
func configure(name string, a netip.Addr) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("lab: %s: %w", name, err)
	}
	defer unix.Close(s)
	set := func(request uint, value func(*unix.Ifreq) error) error {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = value(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, request, r)
		}
		if err != nil {
			return fmt.Errorf("lab: configure %s %s: %w", name, a, err)
		}
		return nil
	}
	if a.IsValid() {
		ip := a.As4()
		if err := set(unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip[:]) }); err != nil {
			return err
		}
		if err := set(unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }); err != nil {
			return err
		}
	}
	return set(unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
}

// openTUN makes eth0 in the namespace of this thread; what is read from the file
// is what the host sends, one packet at a time.
func openTUN(n int) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("lab: open /dev/net/tun: %w", err)
	}
	// os.File must not poll it: the router does that itself.
	f := os.NewFile(uintptr(fd), fmt.Sprintf("tun of %s", Address(n)))
	r, err := unix.NewIfreq("eth0")
	if err == nil {
		r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lab: make eth0 of %s: %w", Address(n), err)
	}
	if err := configure("eth0", Address(n)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// namespace makes a network of its own with eth0 in it. It lives as long as ns
// is open or a process is in it.
func namespace(n int) (ns, tun *os.File, err error) {
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		made <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("lab: new network namespace: %w", err)
			}
			if err := loopback(); err != nil {
				return err
			}
			if tun, err = openTUN(n); err != nil {
				return err
			}
			if ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
				return fmt.Errorf("lab: %w", err)
			}
			return nil
		}()
	}()
	return ns, tun, <-made
}

// inside runs f on a thread in the namespace; processes that f starts are in it.
// The thread ends when f returns.
func inside(ns *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("lab: enter a host's network: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
