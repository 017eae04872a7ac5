package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// window is how long a hundred samples take here.
const window = fitness.WindowSize * lab.Period

// command is one of the owner's, on a host, that has to succeed.
func (f *fleet) command(host string, args ...string) string {
	f.t.Helper()
	said, err := f.Node(host).Suffrage(f.t.Context(), args...)
	f.do(err)
	return said
}

// eventually is a command that is given again until it succeeds.
func (f *fleet) eventually(host string, args ...string) {
	f.t.Helper()
	var err error
	defer func() {
		if f.t.Failed() && err != nil {
			f.t.Logf("last said: %v", err)
		}
	}()
	f.wait(strings.Join(args, " "), func() bool {
		_, err = f.Node(host).Suffrage(f.t.Context(), args...)
		return err == nil
	})
}

// target has the owner set how many voters there are to be, and follows it there:
// never fewer than there were, or are to be, and never more than one above.
func (f *fleet) target(n int) {
	f.t.Helper()
	now := len(f.voters())
	f.phase(min(now, n), max(now, n)+1)
	f.eventually(f.seat, "target", strconv.Itoa(n), "--yes", "--by", "anna")
	f.until(fmt.Sprintf("%d vote", n), func(s lab.Status) bool { return len(s.Voters()) == n && s.Decision.Operation == nil })
	f.phase(n, n+1)
}

// voters are those of now.
func (f *fleet) voters() []string {
	f.t.Helper()
	return f.until("the voters are known", func(s lab.Status) bool { return len(s.Voters()) > 0 }).Voters()
}

// planless checks for a while that nothing is planned or under way, and gives the
// decisions that it saw. A while in which none was read goes on until one is.
func (f *fleet) planless(d time.Duration) []membership.Decision {
	f.t.Helper()
	var seen []membership.Decision
	began := time.Now()
	f.wait(fmt.Sprintf("nothing was planned for %v", d), func() bool {
		got, err := f.Decision(f.t.Context())
		switch {
		case err != nil:
		case got.Plan != nil || got.Operation != nil:
			f.fail("planned: %s", got)
			f.t.FailNow()
		default:
			seen = append(seen, got)
		}
		return len(seen) > 0 && time.Since(began) >= d
	})
	return seen
}

// put and get are a client's, beside those that write all the time.
func (f *fleet) put(key, value string) {
	f.t.Helper()
	_, err := f.Client.Put(f.t.Context(), key, value)
	f.do(err)
}

func (f *fleet) get(key string) string {
	f.t.Helper()
	g, err := f.Client.Get(f.t.Context(), key)
	f.do(err)
	if len(g.Kvs) == 0 {
		return ""
	}
	return string(g.Kvs[0].Value)
}

// putTime is how long a put takes: the median of some.
func (f *fleet) putTime() time.Duration {
	f.t.Helper()
	took := make([]time.Duration, 25)
	for i := range took {
		began := time.Now()
		f.put("/mesh/pace", "")
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// slowPut is from where on a put is slow beside those before the fault.
func (f *fleet) slowPut() time.Duration { return 2*f.pace + 5*time.Millisecond }

// slower waits until puts are slow. They are where the slow voter leads: beside one
// that follows, the other two are a majority as fast as ever.
func (f *fleet) slower() {
	f.t.Helper()
	f.wait(fmt.Sprintf("a put takes longer than %v", f.slowPut().Round(100*time.Microsecond)), func() bool { return f.putTime() >= f.slowPut() })
}

// asFast waits until puts, which were slower, are about as fast as before the fault.
func (f *fleet) asFast() {
	f.t.Helper()
	f.wait(fmt.Sprintf("a put takes about %v, as before", f.pace.Round(100*time.Microsecond)), func() bool { return f.putTime() < f.slowPut() })
}

// fill writes so many values of so many bytes, beside the other clients; a write
// without an answer is made again. done waits until all are written.
func (f *fleet) fill(count, size int) (done func() error) {
	const writers = 32
	value := strings.Repeat("x", size)
	var all errgroup.Group
	for w := range writers {
		all.Go(func() error {
			for i := w; i < count; i += writers {
				for began := time.Now(); ; {
					ctx, cancel := context.WithTimeout(f.t.Context(), window)
					_, err := f.Client.Put(ctx, fmt.Sprintf("/fill/%d", i%1000), value)
					cancel()
					if err == nil {
						break
					}
					if time.Since(began) > far {
						return fmt.Errorf("fill: %w", err)
					}
				}
			}
			return nil
		})
	}
	return all.Wait
}

// agree waits until all voters name one leader, each asked for itself.
func (f *fleet) agree() {
	f.t.Helper()
	f.wait("all voters name one leader", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), lookLimit)
		defer cancel()
		list, err := f.Client.MemberList(ctx)
		if err != nil {
			return false
		}
		named := map[uint64]bool{}
		for _, m := range list.Members {
			if m.IsLearner {
				continue
			}
			s, err := f.Client.Status(ctx, m.ClientURLs[0])
			if err != nil || s.Leader == 0 {
				return false
			}
			named[s.Leader] = true
		}
		return len(named) == 1
	})
}

// same checks that all voters hold the same, by etcd's own hash of everything.
func (f *fleet) same() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), far)
	defer cancel()
	list, err := f.Client.MemberList(ctx)
	f.do(err)
	now, err := f.Client.Get(ctx, "/kept")
	f.do(err)
	hashes := map[uint32][]string{}
	for _, m := range list.Members {
		if m.IsLearner {
			continue
		}
		f.wait(m.Name+" is as far as the others were", func() bool {
			s, err := f.Client.Status(ctx, m.ClientURLs[0])
			return err == nil && s.Header.Revision >= now.Header.Revision
		})
		h, err := f.Client.HashKV(ctx, m.ClientURLs[0], now.Header.Revision)
		f.do(err)
		hashes[h.Hash] = append(hashes[h.Hash], m.Name)
	}
	if len(hashes) != 1 {
		f.fail("at revision %d the voters differ: %v", now.Header.Revision, hashes)
	}
}
