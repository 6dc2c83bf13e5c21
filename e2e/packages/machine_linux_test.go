package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// machine is a Debian of its own that systemd has booted, in namespaces: it shares nothing with the machine that tests but
// the kernel.
type machine struct {
	t    *testing.T
	init string // its process 1, as this machine counts
}

// boot makes a Debian and boots it. The directories of binds are below /mnt there.
func boot(t *testing.T, binds ...string) *machine {
	t.Helper()
	dir := filepath.Join(tempDir(t), "debian")
	do(t, "", nil, "mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,curl", "bookworm", dir)
	args := ""
	for _, b := range binds {
		args += " --bind-ro=" + b + ":/mnt/" + filepath.Base(b)
	}
	// Its cgroups are the second version's, whatever this machine has; nobody has to register it.
	c := exec.Command("unshare", "--mount", "--cgroup", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "sh", "-ec", `
		umount -l /sys/fs/cgroup 2>/dev/null || true
		mount -t cgroup2 none /sys/fs/cgroup
		exec systemd-nspawn --quiet --register=no --keep-unit --private-network --console=read-only --machine=iop-packages -D "$1" -b`+args, "sh", dir)
	var console bytes.Buffer
	c.Stdout, c.Stderr = &console, &console
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t}
	t.Cleanup(func() {
		_ = c.Process.Kill() // and with it all of its namespace
		_ = c.Wait()         // that it was killed is no news
		if t.Failed() {
			t.Log(console.String())
		}
	})
	await(t, "the machine has booted", func() (bool, string) {
		m.init = descendant(strconv.Itoa(c.Process.Pid), "systemd")
		if m.init == "" {
			return false, "there is no process 1"
		}
		said, _ := m.try("systemctl is-system-running")
		return strings.TrimSpace(said) == "running", said
	})
	return m
}

// descendant is the process of that name below another, "" if there is none.
func descendant(of, name string) string {
	kids, err := os.ReadFile("/proc/" + of + "/task/" + of + "/children")
	if err != nil {
		return ""
	}
	for _, kid := range strings.Fields(string(kids)) {
		if comm, err := os.ReadFile("/proc/" + kid + "/comm"); err == nil && strings.TrimSpace(string(comm)) == name {
			return kid
		}
		if found := descendant(kid, name); found != "" {
			return found
		}
	}
	return ""
}

// try runs a line of shell as root there.
func (m *machine) try(line string) (string, error) {
	return try(m.t.Context(), "/", nil, "nsenter", "--target", m.init, "--all", "--", "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "/bin/sh", "-ec", line)
}

// do is try that has to succeed. What it says is trimmed.
func (m *machine) do(line string) string {
	m.t.Helper()
	said, err := m.try(line)
	if err != nil {
		journal, _ := m.try("journalctl --no-pager -n 40 -u iop-edged -u iop-noded")
		m.t.Fatalf("%v\n%s", err, journal)
	}
	return strings.TrimSpace(said)
}

// says has a line say exactly that.
func (m *machine) says(line, want string) {
	m.t.Helper()
	said, _ := m.try(line) // is-active and the like have exit codes of their own
	if said = strings.TrimSpace(said); said != want {
		journal, _ := m.try("journalctl --no-pager -n 40 -u iop-edged -u iop-noded")
		m.t.Fatalf("%s: %q, want %q\n%s", line, said, want, journal)
	}
}

// becomes waits until a line succeeds.
func (m *machine) becomes(line string) {
	m.t.Helper()
	await(m.t, line, func() (bool, string) {
		said, err := m.try(line)
		if err != nil {
			return false, err.Error()
		}
		return true, said
	})
}
