package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"suffrage/membership"
)

// The test binary plays the processes of the demo too: TestMain takes the role
// that the environment names.
const roleVariable = "SUFFRAGE_DEMO_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	args := os.Args[1:]
	switch role {
	case "sleep":
		time.Sleep(time.Hour)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "crash":
		for i := range 20 {
			fmt.Println("line", i)
		}
		os.Exit(3)
	case "supervise":
		superviseAndPrint(args)
	case "slow-exec":
		os.Unsetenv(roleVariable)
		if len(args) > 0 {
			os.Setenv(roleVariable, args[0])
			args = append([]string{os.Args[0]}, args[1:]...)
		}
		fail(SlowExec(args))
	case "host":
		playHost(args)
	case "fsync":
		fsyncAndPrint(args)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// superviseAndPrint starts one sleeping child, plain or behind SlowExec, prints
// its process id and waits to be killed.
func superviseAndPrint(args []string) {
	s := NewSupervisor()
	go s.Run(context.Background())
	p := Process{Name: "child", Log: os.DevNull, Args: []string{os.Args[0]}}
	role := "sleep"
	ours, its, err := slowPair()
	fail(err)
	if args[0] == "slow" {
		role = "slow-exec"
		p.Args, p.Files = append(p.Args, "sleep"), []*os.File{its}
	}
	os.Setenv(roleVariable, role)
	c, err := s.Start(context.Background(), p)
	fail(err)
	its.Close()
	if args[0] == "slow" {
		_, err := AcceptSlowDisk(ours)
		fail(err)
		time.Sleep(200 * time.Millisecond) // what must die is what it execs
	}
	fmt.Println(c.PID)
	time.Sleep(time.Hour)
}

func writeDecision(w io.Writer, d membership.Decision) { json.NewEncoder(w).Encode(d) }

// fsyncAndPrint syncs a file as often as asked and prints each time in
// microseconds.
func fsyncAndPrint(args []string) {
	n, err := strconv.Atoi(args[0])
	fail(err)
	f, err := os.CreateTemp("", "suffrage-fsync-")
	fail(err)
	defer os.Remove(f.Name())
	for range n {
		_, err := f.WriteString("x")
		fail(err)
		start := time.Now()
		fail(f.Sync())
		fmt.Println(time.Since(start).Microseconds())
	}
}
