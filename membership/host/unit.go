package host

import (
	"context"
	"errors"
)

// ErrFenced is what a start gives while the fence is up.
var ErrFenced = errors.New("host: this host's etcd server is fenced")

// Unit starts and stops this host's member and nothing else.
type Unit interface {
	// Start starts the member; one that runs goes on, and that is no error.
	// While the fence is up it gives ErrFenced, whether the member runs or not.
	Start(ctx context.Context) error
	// Stop ends the member and returns when it has ended; it is not started
	// again by itself. One that does not run is no error.
	Stop(ctx context.Context) error
	// State tells what runs. An error means that it is not known.
	State(ctx context.Context) (UnitState, error)
}

// UnitState is what whatever starts the member knows of it.
type UnitState struct {
	// Running: the member's process is there.
	Running bool
	// Starts counts the starts since whatever does it began, where it counts them.
	Starts int
	// Invocation names the newest start, where it names them; empty when there was
	// none since it began.
	Invocation string
	// EtcdOnly: the command line says so, of K3s's unit.
	EtcdOnly bool
}
