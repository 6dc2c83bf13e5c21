package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// offlineVar is set in the process of a test that has no network but its own loopback; it names the built programs.
const offlineVar = "IOP_E2E_OFFLINE"

// offline runs the whole test once more in a process whose only network is a loopback of its own, and reports true when
// that is done: the test has nothing left to do. Where the system does not allow it (root is needed), the test goes on
// in place. What has to be built or fetched comes first.
func offline(t *testing.T) bool {
	t.Helper()
	if dir := os.Getenv(offlineVar); dir != "" {
		built.once.Do(func() { built.dir = dir })
		if err := loopbackUp(); err != nil {
			t.Fatal("take the loopback up: ", err)
		}
		return false
	}
	apart := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	probe := exec.Command("/bin/sh", "-c", "exit 0")
	probe.SysProcAttr = apart
	if err := probe.Run(); err != nil {
		t.Log("with the network: this system gives no test a network of its own: ", err)
		return false
	}
	c := exec.CommandContext(t.Context(), self(t), "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=10m")
	c.Env = append(os.Environ(), offlineVar+"="+filepath.Dir(program(t, "edged")))
	c.SysProcAttr = apart
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("offline: %v\n%s", err, out)
	}
	t.Logf("offline:\n%s", out)
	return true
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}
