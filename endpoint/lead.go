package endpoint

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

var errEnds = errors.New("the agent ends")

// lead is the handler of every request.
func (e *Endpoint) lead(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	k, ok := methods[method]
	if !ok {
		e.o.Metrics.requests.WithLabelValues("refused").Inc()
		return status.Errorf(codes.PermissionDenied, "suffrage endpoint: %s is not for clients of the datastore: ask a voter itself, with a certificate of the fleet", method)
	}
	first := &frame{}
	if k != endless {
		if err := s.RecvMsg(first); err != nil {
			return err
		}
		if err := keep(method, first.data); err != nil {
			e.o.Metrics.requests.WithLabelValues("refused").Inc()
			return err
		}
	}
	ctx := onward(s.Context())
	err := e.repeat(ctx, k, func(ctx context.Context, v *voter, p *peer.Peer) error {
		switch k {
		case endless:
			return both(ctx, v, method, s, p)
		case pages:
			return many(ctx, v, method, first, s, p)
		}
		return one(ctx, v, method, first, s, p)
	})
	e.o.Metrics.requests.WithLabelValues(outcome(err)).Inc()
	return err
}

// onward carries a client's metadata to the voter, but for what is of one
// connection. The deadline goes with the context.
func onward(ctx context.Context) context.Context {
	in, _ := metadata.FromIncomingContext(ctx)
	out := metadata.MD{}
	for k, v := range in {
		if !strings.HasPrefix(k, ":") && !strings.HasPrefix(k, "grpc-") {
			out[k] = v
		}
	}
	return metadata.NewOutgoingContext(ctx, out)
}

// outcome is a label of the metric: whether a voter answered, whatever it said.
func outcome(err error) string {
	if status.Code(err) == codes.Unavailable {
		return "unavailable"
	}
	return "answered"
}

// errUnled is kept apart from what voters answer.
type errUnled struct{ error }

// repeat leads a request, and leads it again as long as it is certain that it was
// not carried out, up to Patience.
func (e *Endpoint) repeat(ctx context.Context, k kind, do func(context.Context, *voter, *peer.Peer) error) error {
	until := time.Now().Add(Patience)
	for {
		r := e.route.Load()
		v := r.to(k)
		if v == nil && r.err != nil {
			return status.Errorf(codes.Unavailable, "suffrage endpoint: no voter of etcd can be led to: %v", r.err)
		}
		if v != nil && v.take() {
			err, again := e.once(ctx, k, v, do)
			v.done()
			if !again || ctx.Err() != nil || time.Now().After(until) {
				return err
			}
			e.o.Metrics.repeated.Inc()
			e.kick()
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-r.next:
		case <-time.After(betweenTries):
		}
	}
}

// once leads a request to one voter. again is true where it was certainly not
// carried out.
func (e *Endpoint) once(ctx context.Context, k kind, v *voter, do func(context.Context, *voter, *peer.Peer) error) (err error, again bool) {
	end := v.cut
	if k == endless {
		end = v.left
	}
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(end, cancel)()
	var p peer.Peer // filled in once a connection was chosen
	err = do(call, v, &p)
	switch s := status.Convert(err); {
	case err == nil || errors.As(err, new(errUnled)):
		return err, false
	case p.Addr == nil && (s.Code() == codes.Unavailable || end.Err() != nil && ctx.Err() == nil):
		return err, true
	case s.Code() == codes.Unknown && s.Message() == dropped:
		return err, true
	case end.Err() != nil && ctx.Err() == nil && (s.Code() == codes.Canceled || s.Code() == codes.Unavailable):
		// Unavailable: etcd's client takes a watch up again, and repeats reads.
		return status.Errorf(codes.Unavailable, "suffrage endpoint: %s is not led to any more: %s", v.label, onLeaving[k]), false
	}
	return err, false
}

// dropped is what etcd's leader says of a proposal that it did not take, as while
// it hands over (go.etcd.io/raft, ErrProposalDropped): nothing of it is in the log.
const dropped = "raft proposal dropped"

var onLeaving = map[kind]string{
	read:    "ask again",
	write:   "it is not known whether this was done",
	pages:   "ask again",
	endless: "begin again where this ended",
}

// one is a request with one answer.
func one(ctx context.Context, v *voter, method string, in *frame, s grpc.ServerStream, p *peer.Peer) error {
	var header, trailer metadata.MD
	out := &frame{}
	err := v.conn.Invoke(ctx, method, in, out, passing, grpc.Peer(p), grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil {
		return err
	}
	s.SetTrailer(trailer)
	if err := s.SetHeader(header); err != nil {
		return errUnled{err}
	}
	if err := s.SendMsg(out); err != nil {
		return errUnled{err}
	}
	return nil
}

var passing = grpc.ForceCodecV2(frames{})

// many is a request with many answers.
func many(ctx context.Context, v *voter, method string, in *frame, s grpc.ServerStream, p *peer.Peer) error {
	up, err := v.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, passing, grpc.Peer(p))
	if err != nil {
		return err
	}
	p.Addr = sent
	if err := up.SendMsg(in); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := up.CloseSend(); err != nil {
		return err
	}
	return answers(up, s)
}

// both is a stream each way. A client that has said its last may still listen.
func both(ctx context.Context, v *voter, method string, s grpc.ServerStream, p *peer.Peer) error {
	up, err := v.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, passing, grpc.Peer(p))
	if err != nil {
		return err
	}
	p.Addr = sent
	go func() {
		for {
			f := &frame{}
			if s.RecvMsg(f) != nil {
				// Its end, or the handler's, which ends the stream's context.
				_ = up.CloseSend()
				return
			}
			if up.SendMsg(f) != nil {
				return // answers gets the reason
			}
		}
	}()
	return answers(up, s)
}

// answers passes on what a voter says until it ends.
func answers(up grpc.ClientStream, s grpc.ServerStream) error {
	if header, err := up.Header(); err == nil {
		if err := s.SendHeader(header); err != nil {
			return errUnled{err}
		}
	}
	for {
		f := &frame{}
		switch err := up.RecvMsg(f); {
		case errors.Is(err, io.EOF):
			s.SetTrailer(up.Trailer())
			return nil
		case err != nil:
			s.SetTrailer(up.Trailer())
			return err
		}
		if err := s.SendMsg(f); err != nil {
			return errUnled{err}
		}
	}
}

// sent stands for the address of a voter that a stream was opened to.
var sent = streamAddr{}

type streamAddr struct{}

func (streamAddr) Network() string { return "tcp" }
func (streamAddr) String() string  { return "a voter" }

func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
