package host

import (
	"context"
	"fmt"
	"time"
)

// Removed is what a member leaves behind that learnt from its own cluster that
// it is no longer in it: its host is fenced, its datastore aside, and the host a
// standby, as after a Retire. No order is needed: the member's ID is dead for
// ever. Without it a host that was away while its member was removed would start
// that member again and again. The member calls it once its etcd is closed.
//
// The fence counts as proven only once an order has proven it.
func Removed(ctx context.Context, data, datastore, member string) error {
	s := &Server{o: Options{Data: data, Datastore: datastore}, files: files{path: data}}
	return s.removed(ctx, member)
}

func (s *Server) removed(ctx context.Context, member string) error {
	// First whose host it is: a fence would keep another member from starting.
	r, err := s.role()
	if err != nil {
		return err
	}
	if r.Member != "" && r.Member != member {
		return fmt.Errorf("host: member %s was removed, and %s says member %s: the datastore is left where it is", member, s.files.file(roleFile), r.Member)
	}
	if Fenced(s.o.Data) == nil { // one that an order put up says more
		if _, err := s.putFence(ctx, Order{Member: member}); err != nil {
			return err
		}
	}
	if err := s.aside(member); err != nil {
		return err
	}
	if err := s.files.remove(joinFile); err != nil {
		return err
	}
	return s.files.write(roleFile, role{Role: Standby, At: time.Now().UTC()})
}
