package standby

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// namespaces asks whether the kernel makes user namespaces. The units of the member
// and the controller have one (PrivateUsers=), and systemd starts neither without: a
// voter would then end with its next restart.
func (h Host) namespaces() Check {
	const name, limit = "namespaces", "/proc/sys/user/max_user_namespaces" // namespaces(7)
	const help = "allow them: sysctl user.max_user_namespaces=1000, also in /etc/sysctl.d; without them systemd does not start the member and the controller"
	b, err := os.ReadFile(h.at(limit))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(name, "this kernel has no user namespaces", "a kernel with CONFIG_USER_NS; without them systemd does not start the member and the controller")
	case err != nil:
		return unknown(name, err)
	case strings.TrimSpace(string(b)) == "0":
		return wrong(name, "user namespaces are switched off (user.max_user_namespaces is 0)", help)
	}
	return ok(name, "the kernel makes user namespaces")
}
