package snapshots

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// scratchOrder is what Drill tells Scratch.
type scratchOrder struct {
	File string `json:"file"`
	// Dir is an empty directory, the working directory of the process.
	Dir string `json:"dir"`
}

// Scratch is the other half of Drill, in a process of its own: it restores the
// snapshot that it is told of, runs a one-member etcd on it, says so on out, and
// ends when in ends: by Drill, or with the process that ran it. It removes the
// directory that it was told of.
//
// It listens on sockets in that directory, which only its owner may enter, and
// on no port: a port of loopback would show the cluster's secrets to every user
// of the machine for as long as the drill runs, and may be taken.
func Scratch(ctx context.Context, in io.Reader, out io.Writer) error {
	// Who started this may be gone: to say "serving" to nobody must not end the
	// process before it has removed its directory.
	signal.Ignore(syscall.SIGPIPE)
	r := bufio.NewReader(io.LimitReader(in, 64<<10))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("snapshots: scratch: this command is run by 'snapshot verify --drill', not by hand: %w", err)
	}
	var o scratchOrder
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("snapshots: scratch: %w", err)
	}
	if here, err := os.Getwd(); err != nil || here != o.Dir || !filepath.IsAbs(o.Dir) {
		return fmt.Errorf("snapshots: scratch: works in %s, not %s", here, o.Dir)
	}
	defer os.RemoveAll(o.Dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	return o.run(ctx, out)
}

func (o scratchOrder) run(ctx context.Context, out io.Writer) error {
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m"}), zapcore.Lock(os.Stderr), zap.ErrorLevel))
	data := filepath.Join(o.Dir, "data")
	// Not raised: the drill compares revisions with the snapshot's.
	options := RestoreOptions{Name: "drill", Cluster: map[string]string{"drill": "unix://peer"}, Token: "drill"}
	if err := options.build(o.File, data, log); err != nil {
		return fmt.Errorf("snapshots: scratch: restore: %w", err)
	}
	e, err := embed.StartEtcd(scratchConfig(data, log))
	if err != nil {
		return fmt.Errorf("snapshots: scratch: start etcd: %w", err)
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return fmt.Errorf("snapshots: scratch: etcd: %w", err)
	case <-e.Server.StopNotify():
		return errors.New("snapshots: scratch: etcd stopped by itself")
	case <-ctx.Done():
		e.Server.HardStop() // Close waits for a member that is ready or stopped
		return nil
	}
	if _, err := fmt.Fprintln(out, "serving"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// scratchConfig is an etcd that lives for seconds and whose data nobody needs.
func scratchConfig(data string, log *zap.Logger) *embed.Config {
	// Relative to the working directory: a socket's path has at most 107 bytes.
	peer, client := url.URL{Scheme: "unix", Host: "peer"}, url.URL{Scheme: "unix", Host: "client"}
	c := embed.NewConfig()
	c.Name, c.Dir = "drill", data
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = "drill=" + peer.String()
	c.ClusterState = embed.ClusterStateFlagExisting
	c.TickMs, c.ElectionMs = 20, 200
	c.UnsafeNoFsync = true
	c.QuotaBackendBytes = 100 << 30 // a full database is to be looked at too
	c.EnableGRPCGateway = false
	c.LogLevel = "error"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return c
}
