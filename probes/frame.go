package probes

import (
	"encoding/binary"
	"fmt"
)

// PingProtocol is the ALPN name under which ping frames are spoken, so that
// they share the agent's port with its API.
const PingProtocol = "suffrage-ping/1"

// FrameSize is the size of a ping frame in bytes, both ways.
const FrameSize = 40

const (
	frameMagic   = "SFPN"
	frameVersion = 1
	kindPing     = 1
	kindPong     = 2
)

// Frame is a ping or its answer. Times are wall clock, nanoseconds since 1970:
// T1 when the ping was sent, T2 when the peer had read it, T3 when the peer
// answered. T2 and T3 are zero in a ping.
//
// On the wire, big-endian: magic "SFPN" (4), version (1), kind (1), zero (2),
// Seq, T1, T2, T3 (8 each).
type Frame struct {
	Answer     bool
	Seq        uint64
	T1, T2, T3 int64
}

// Append adds the frame's FrameSize bytes to b.
func (f Frame) Append(b []byte) []byte {
	kind := byte(kindPing)
	if f.Answer {
		kind = kindPong
	}
	b = append(b, frameMagic...)
	b = append(b, frameVersion, kind, 0, 0)
	b = binary.BigEndian.AppendUint64(b, f.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(f.T1))
	b = binary.BigEndian.AppendUint64(b, uint64(f.T2))
	return binary.BigEndian.AppendUint64(b, uint64(f.T3))
}

// ParseFrame reads exactly one frame.
func ParseFrame(b []byte) (Frame, error) {
	switch {
	case len(b) != FrameSize:
		return Frame{}, fmt.Errorf("probes: ping frame of %d bytes, want %d", len(b), FrameSize)
	case string(b[:4]) != frameMagic:
		return Frame{}, fmt.Errorf("probes: ping frame begins with %q, want %q", b[:4], frameMagic)
	case b[4] != frameVersion:
		return Frame{}, fmt.Errorf("probes: ping frame of version %d, this build speaks %d: run the same version of suffrage on both hosts", b[4], frameVersion)
	case b[5] != kindPing && b[5] != kindPong, b[6] != 0, b[7] != 0:
		return Frame{}, fmt.Errorf("probes: ping frame with kind % x is not known", b[5:8])
	}
	return Frame{
		Answer: b[5] == kindPong,
		Seq:    binary.BigEndian.Uint64(b[8:]),
		T1:     int64(binary.BigEndian.Uint64(b[16:])),
		T2:     int64(binary.BigEndian.Uint64(b[24:])),
		T3:     int64(binary.BigEndian.Uint64(b[32:])),
	}, nil
}
