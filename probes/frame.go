package probes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// PingProtocol is the ALPN name under which ping frames are spoken, so that
// they share the agent's port with its API.
const PingProtocol = "suffrage-ping/1"

// FrameSize is the size of a ping frame in bytes, both ways, without padding.
const FrameSize = 40

// MaxPadding is the most padding of a frame in bytes. It makes three packets of
// a frame, four with an MTU of 1280, which every TCP sends at once (RFC 6928), so that no round trip is added.
const MaxPadding = 4096

const (
	frameMagic   = "SFPN"
	frameVersion = 2
	kindPing     = 1
	kindPong     = 2
)

// Frame is a ping or its answer. Times are wall clock, nanoseconds since 1970:
// T1 when the ping was sent, T2 when the peer had read it, T3 when the peer
// answered. T2 and T3 are zero in a ping. An answer is padded as its ping was.
//
// On the wire, big-endian: magic "SFPN" (4), version (1), kind (1), Padding (2),
// Seq, T1, T2, T3 (8 each); then so many zeros.
type Frame struct {
	Answer     bool
	Padding    int // bytes, 0 to MaxPadding
	Seq        uint64
	T1, T2, T3 int64
}

var zeros [MaxPadding]byte

// Append adds the frame's FrameSize bytes and its padding to b.
func (f Frame) Append(b []byte) []byte {
	kind := byte(kindPing)
	if f.Answer {
		kind = kindPong
	}
	b = append(b, frameMagic...)
	b = append(b, frameVersion, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(f.Padding))
	b = binary.BigEndian.AppendUint64(b, f.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(f.T1))
	b = binary.BigEndian.AppendUint64(b, uint64(f.T2))
	b = binary.BigEndian.AppendUint64(b, uint64(f.T3))
	return append(b, zeros[:f.Padding]...)
}

// ReadFrame reads one frame and its padding. buf has FrameSize bytes, and is
// written over. The error is io.EOF where there is nothing more to read.
func ReadFrame(r io.Reader, buf []byte) (Frame, error) {
	if _, err := io.ReadFull(r, buf); err != nil {
		return Frame{}, err
	}
	f, err := parse(buf)
	if err == nil && f.Padding > 0 {
		if _, err = io.CopyN(io.Discard, r, int64(f.Padding)); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	return f, err
}

func parse(b []byte) (Frame, error) {
	padding := int(binary.BigEndian.Uint16(b[6:]))
	switch {
	case string(b[:4]) != frameMagic:
		return Frame{}, fmt.Errorf("probes: ping frame begins with %q, want %q", b[:4], frameMagic)
	case b[4] != frameVersion:
		return Frame{}, fmt.Errorf("probes: ping frame of version %d, this build speaks %d: run the same version of suffrage on both hosts", b[4], frameVersion)
	case b[5] != kindPing && b[5] != kindPong:
		return Frame{}, fmt.Errorf("probes: ping frame of kind %d is not known", b[5])
	case padding > MaxPadding:
		return Frame{}, fmt.Errorf("probes: ping frame with %d bytes of padding, at most %d are allowed", padding, MaxPadding)
	}
	return Frame{
		Answer:  b[5] == kindPong,
		Padding: padding,
		Seq:     binary.BigEndian.Uint64(b[8:]),
		T1:      int64(binary.BigEndian.Uint64(b[16:])),
		T2:      int64(binary.BigEndian.Uint64(b[24:])),
		T3:      int64(binary.BigEndian.Uint64(b[32:])),
	}, nil
}
