package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strconv"
)

// runAgent registers the Node and stays.
func runAgent(ctx context.Context, o Options, log *slog.Logger) error {
	if o.Token == "" {
		return errors.New("--token is required")
	}
	from, err := newOther(ctx, o.Server, o.Token)
	if err != nil {
		return err
	}
	ca, err := from.get(ctx, pathCA)
	if err != nil {
		return err
	}
	file := layout(o.DataDir).agent("server-ca.crt")
	if err := write(file, ca); err != nil {
		return err
	}
	b, err := balancerOf(file, password(o.Token))
	if err != nil {
		return err
	}
	b.candidates = func(context.Context) []string { return []string{hostPort(o.Server)} }
	if err := register(ctx, o, b, log); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// hostPort is where a server's URL is reached; "" for none.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(supervisorPort)
	}
	return net.JoinHostPort(u.Hostname(), port)
}
