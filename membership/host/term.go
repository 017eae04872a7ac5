package host

import "fmt"

const termFile = "term.json"

// term is the highest one seen.
type term struct {
	Term uint64 `json:"term"`
}

// LowerTermError is an order of a holder that has lost the Lease.
type LowerTermError struct{ Seen, Got uint64 }

func (e *LowerTermError) Error() string {
	return fmt.Sprintf("the order is of term %d, and this host has had one of term %d: another holds the lease now", e.Got, e.Seen)
}

// accept refuses a lower Term, and has a higher one on the disk before anything
// is done under it.
func (s *Server) accept(got uint64) error {
	var t term
	if _, err := s.files.read(termFile, &t); err != nil {
		return err
	}
	switch {
	case got < t.Term:
		return &coded{Refused, StaleTerm, &LowerTermError{Seen: t.Term, Got: got}}
	case got == t.Term:
		return nil
	}
	return s.files.write(termFile, term{got})
}
