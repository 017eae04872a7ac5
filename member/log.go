package member

import (
	"context"
	"log/slog"
	"sync"

	"go.uber.org/zap/zapcore"
)

// logCore passes what etcd logs through zap on to slog, and keeps the reason
// why etcd's server stopped: etcd writes it to its log and nowhere else
// (server/etcdserver/server.go: "server error").
type logCore struct {
	log    *slog.Logger
	fields []zapcore.Field
	stop   *stopReason
}

type stopReason struct {
	mu  sync.Mutex
	err error
}

func (s *stopReason) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *stopReason) get() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (c *logCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c *logCore) With(f []zapcore.Field) zapcore.Core {
	d := *c
	d.fields = append(append([]zapcore.Field(nil), c.fields...), f...)
	return &d
}

func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Message == "server error" {
		for _, f := range fields {
			if err, ok := f.Interface.(error); ok {
				c.stop.set(err)
			}
		}
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields, fields...) {
		f.AddTo(enc)
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	level := slog.LevelWarn
	switch e.Level {
	case zapcore.PanicLevel:
		attrs = append(attrs, slog.String("next", "etcd ends here; if the disk is full, free space and start it again"))
	case zapcore.FatalLevel:
		// zap ends the process after this: etcd does not go on when its log could
		// not be written, and must not. What was acknowledged is on other disks.
		attrs = append(attrs, slog.String("next", "etcd ends here, nothing acknowledged is lost; if the disk is full, free space and start it again"))
	}
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

func (c *logCore) Sync() error { return nil }
