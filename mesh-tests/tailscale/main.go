// Command tailscale is what tailscaled needs around it when no tailnet is at
// hand, and what stands in its way:
//
//	tailscale serve ADDRESS   Tailscale's control server for tests, a relay (DERP,
//	                          region lab1) and a STUN server, on one address
//	tailscale block           drops all UDP to and from the devices of this network
//	                          namespace but the loopback and tailscale0
//	tailscale allow           ends that
//
// It is a module of its own, as tailscaled itself is built from it (go.mod's
// tool): both need hundreds of packages that Suffrage does not.
package main

import (
	"fmt"
	"os"
)

func main() {
	err := fmt.Errorf("want serve ADDRESS, block or allow, not %q", os.Args[1:])
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		err = serve(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "block":
		err = block()
	case len(os.Args) == 2 && os.Args[1] == "allow":
		err = allow()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tailscale:", err)
		os.Exit(1)
	}
}
