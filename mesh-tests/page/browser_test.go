package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long anything may take on a machine that is busy with other things.
const patience = 2 * time.Minute

// browser is one Chromium for all tests, started by the first.
var browser = sync.OnceValues(func() (context.Context, error) {
	dir, err := os.MkdirTemp("", "suffrage-chromium-")
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(os.Getenv("SUFFRAGE_CHROMIUM")), chromedp.UserDataDir(dir), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WSURLReadTimeout(patience)}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "disable-default-apps",
		// A page that nobody sees is thought to be hidden, and then looks no more.
		"disable-backgrounding-occluded-windows", "disable-background-timer-throttling", "disable-renderer-backgrounding"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	ended = func() {
		end()
		stop()
		_ = os.RemoveAll(dir)
	}
	return ctx, chromedp.Do(ctx)
})

var ended = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	ended()
	os.Exit(code)
}

// tab is one page of the browser, and what it did.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
	ours []string // what else it may ask

	mu       sync.Mutex
	troubles []string
	asked    []string
}

// open shows a page, and fails the test in the end if anything was logged there.
func open(t *testing.T, base, path string, before ...step) *tab {
	t.Helper()
	if os.Getenv("SUFFRAGE_CHROMIUM") == "" {
		t.Skip("SUFFRAGE_CHROMIUM names no browser; `make page-test` looks for one and runs this")
	}
	all, err := browser()
	if err != nil {
		t.Fatal("chromium does not start:", err)
	}
	ctx, end := chromedp.NewContext(all)
	t.Cleanup(end)
	b := &tab{t: t, ctx: ctx, base: base}
	if err := errors.Join(chromedp.Do(ctx), chromedp.Listen(ctx, b.heard)); err != nil {
		t.Fatal("a tab does not open:", err)
	}
	t.Cleanup(b.clean)
	b.do(append(before, chromedp.Navigate(base+path))...)
	return b
}

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		b.troubles = append(b.troubles, fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, "thrown: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.troubles = append(b.troubles, fmt.Sprintf("console %s: %v", e.Type, e.Args))
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// clean wants nothing logged so far, and nothing asked of anybody else. That a
// connection or an order was refused is no fault of the page's.
func (b *tab) clean() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.troubles {
		if !regexp.MustCompile("net::ERR_|status of (403|409|503)").MatchString(s) {
			b.t.Error("the browser says:", s)
		}
	}
	for _, u := range b.asked {
		if !slices.ContainsFunc(append(b.ours, b.base), func(base string) bool { return strings.HasPrefix(u, base+"/") || strings.HasPrefix(u, "data:,") }) {
			b.t.Error("the page asked for", u)
		}
	}
}

// step is one thing that is done in a tab.
type step = chromedp.Action[chromedp.Void]

func (b *tab) do(steps ...step) {
	b.t.Helper()
	run(b, chromedp.Steps(steps...))
}

// js gives what an expression is in the page.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression))
}

func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal("the browser: ", err)
	}
	return v
}

// text is an element's as a reader sees it.
func (b *tab) text(selector string) string {
	b.t.Helper()
	s, _ := json.Marshal(selector)
	return js[string](b, fmt.Sprintf("(document.querySelector(%s)?.innerText ?? '').replace(/\\s+/g, ' ').trim()", s))
}

// until waits until an element says something.
func (b *tab) until(selector, says string) {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%s says %q", selector, says), func() error {
		if got := b.text(selector); !strings.Contains(got, says) {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

// live waits until the page's script is at work and what it shows is of now.
func (b *tab) live() {
	b.t.Helper()
	b.eventually("the page is live", func() error {
		if got := b.text("#live-word"); !strings.HasPrefix(got, "live: ") {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

func (b *tab) eventually(what string, try func() error) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			b.picture("failed")
			b.t.Fatalf("%s: not after %v: %v", what, patience, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// picture keeps what is on the screen, where SUFFRAGE_PICTURES names a folder.
func (b *tab) picture(name string) {
	dir := os.Getenv("SUFFRAGE_PICTURES")
	if dir == "" {
		return
	}
	png := run(b, chromedp.FullScreenshot(100))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"), png, 0o644)); err != nil {
		b.t.Error(err)
	}
}

func dark(is bool) step {
	scheme := map[bool]string{false: "light", true: "dark"}[is]
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// forced is a system whose colours go before the page's own.
func forced() step {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}, {Name: "prefers-color-scheme", Value: "dark"}}})
}

func phone() step { return chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile) }

func scriptless() step {
	return command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

func command[P any](c cdp.Command[P, cdp.Empty], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}
