package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"iop/e2e/backend/talk"
)

// stallerRole makes the test binary a talk.Staller.
const stallerRole = "staller"

// playStaller serves at the addresses in a target: directory|address|address of the mute one.
func playStaller(target string) int {
	f := strings.Split(target, "|")
	s := &talk.Staller{Dir: f[0]}
	ready := stallerRole + " ready"
	for i, serve := range []func(net.Listener){s.Serve, s.Mute} {
		l, err := net.Listen("tcp", f[i+1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		ready += fmt.Sprintf(" address%d=%s", i, l.Addr())
		go serve(l)
	}
	fmt.Println(ready)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// staller is a backend in a process of its own, to be killed.
type staller struct {
	*process
	dir, address, mute string
}

func newStaller(t *testing.T) *staller {
	t.Helper()
	s := &staller{dir: t.TempDir(), address: "127.0.0.1:0", mute: "127.0.0.1:0"}
	s.restart(t)
	return s
}

// restart starts it (again) where it was.
func (s *staller) restart(t *testing.T) {
	t.Helper()
	s.process, _ = startRole(t, stallerRole, strings.Join([]string{s.dir, s.address, s.mute}, "|"))
	r := pairs(s.out.line)
	s.address, s.mute = r["address0"], r["address1"]
}

// traces are the runs that have stopped, with the pid of who has.
func (s *staller) traces() map[string]int {
	out := map[string]int{}
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if pid, bad := strconv.Atoi(string(b)); err == nil && bad == nil && !strings.HasPrefix(e.Name(), ".") {
			out[e.Name()] = pid
		}
	}
	return out
}

func (s *staller) forget() {
	for name := range s.traces() {
		_ = os.Remove(filepath.Join(s.dir, name))
	}
}
