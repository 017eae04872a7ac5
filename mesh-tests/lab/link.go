package lab

import (
	"fmt"
	"time"
)

// Link is what happens to packets from one host to another. The zero Link
// carries them at once.
type Link struct {
	// Delay is added to every packet, Jitter at random on top of it, up to that much.
	Delay  time.Duration `json:"delay,omitempty"`
	Jitter time.Duration `json:"jitter,omitempty"`
	// Loss is the share of packets that is lost, 0 to 1.
	Loss float64 `json:"loss,omitempty"`
	// Rate is in bits per second, 0 for no limit. A packet that would wait longer
	// than a second for its turn is dropped.
	Rate int64 `json:"rate,omitempty"`
	// Cut drops everything.
	Cut bool `json:"cut,omitempty"`
	// Ports are TCP ports that are blocked: packets to or from them are dropped.
	Ports []uint16 `json:"ports,omitempty"`
	// MaxSize drops packets that are larger, in bytes, as a path with a smaller
	// MTU does whose messages about it are lost; 0 for no limit.
	MaxSize int `json:"max_size,omitempty"`
}

// queueTime is how long a packet may wait for a link with a Rate.
const queueTime = time.Second

// setLink is what the router is told, one JSON value a line.
type setLink struct {
	From int  `json:"from"`
	To   int  `json:"to"`
	Link Link `json:"link"`
}

func (l Link) validate() error {
	switch {
	case l.Delay < 0 || l.Jitter < 0 || l.Delay+l.Jitter > time.Minute:
		return fmt.Errorf("lab: delay %v and jitter %v: allowed: 0 to 1m together", l.Delay, l.Jitter)
	case l.Loss < 0 || l.Loss > 1:
		return fmt.Errorf("lab: loss %v: allowed: 0 to 1", l.Loss)
	case l.Rate < 0 || l.MaxSize < 0:
		return fmt.Errorf("lab: rate %d, max size %d: allowed: 0 or more", l.Rate, l.MaxSize)
	}
	return nil
}
