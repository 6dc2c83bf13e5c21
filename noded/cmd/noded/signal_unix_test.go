//go:build unix

package main

import (
	"bufio"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asNoded in the environment makes the test's program behave as noded.
const asNoded = "IOP_TEST_AS_NODED"

func TestMain(m *testing.M) {
	if os.Getenv(asNoded) != "" {
		main()
	}
	os.Exit(m.Run())
}

// startNoded starts a noded whose only edge takes connections and never says a word, and returns it once it has dialled.
func startNoded(t *testing.T) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	edge, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = edge.Close() })
	c := exec.CommandContext(t.Context(), os.Args[0], "--config", file(t, "node:\n  id: n1\n  token: t\n  edges: [\""+edge.Addr().String()+"\"]\n"))
	c.Env = append(os.Environ(), asNoded+"=1")
	logs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := edge.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return c, bufio.NewScanner(logs)
}

func TestASignalStopsInOrder(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		c, logs := startNoded(t)
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		var last string
		for logs.Scan() {
			last = logs.Text()
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		if !strings.Contains(last, "msg=stopped") {
			t.Errorf("%v: the last log line is %s", s, last)
		}
	}
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	exited := make(chan int, 1)
	ctx, stop := stopOnSignals(t.Context(), slog.New(slog.DiscardHandler), func(code int) { exited <- code })
	defer stop()
	signal := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	<-ctx.Done()
	select {
	case <-exited:
		t.Fatal("the first signal ended the process")
	default:
	}
	signal()
	if code := <-exited; code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
}
