// Package deploy holds what is laid down on a host, in the binary itself: the
// same files as in this directory.
package deploy

import "embed"

// Systemd has the units, their drop-ins and polkit's rules, below "systemd".
//
//go:embed systemd
var Systemd embed.FS
