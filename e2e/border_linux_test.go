//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// disk is the disk of a process, as far as fsync and fdatasync go: a seccomp filter hands each of these calls to the test,
// which lets it pass, keeps it back, or has it fail. The program under test is as it is. It needs Linux 5.19 and a filter
// that may be installed.
type disk struct {
	t    testing.TB
	path string // of the socket on which the process hands its filter over
	door *net.UnixListener
	wait sync.WaitGroup

	mu     sync.Mutex
	turn   *sync.Cond // a change of what follows
	delay  time.Duration
	hangs  bool
	errno  unix.Errno
	calls  int
	closed bool
}

// borderCommand makes the test binary hand its fsyncs to a disk and become another program.
const borderCommand = "become-a-program-with-a-disk"

// newDisk makes a disk for the processes that borders starts. Make it before the cluster, so that it outlives it.
func newDisk(t testing.TB) *disk {
	t.Helper()
	d := &disk{t: t, path: filepath.Join(t.TempDir(), "s")}
	d.turn = sync.NewCond(&d.mu)
	var err error
	if d.door, err = net.ListenUnix("unix", &net.UnixAddr{Name: d.path, Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	d.wait.Go(d.accept)
	t.Cleanup(func() {
		d.set(func() { d.closed = true })
		_ = d.door.Close()
		d.wait.Wait()
	})
	if err := d.probe(); err != nil {
		t.Skip("this system does not let a process be watched with seccomp: ", err)
	}
	return d
}

// probe starts a program behind the border.
func (d *disk) probe() error {
	path, args := d.border("/bin/sh", "-c", "exit 0")
	p := spawn(d.t, "probe", nil, path, args...)
	defer p.kill()
	if code := p.code(d.t); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, p.out.String())
	}
	return nil
}

// border is how to start a program with this disk.
func (d *disk) border(path string, args ...string) (string, []string) {
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	return self, append([]string{borderCommand, d.path, path}, args...)
}

// slow keeps each sync back for a time; hang keeps them until something else is said; break has them fail; well ends all.
func (d *disk) slow(by time.Duration) { d.set(func() { d.delay, d.hangs, d.errno = by, false, 0 }) }
func (d *disk) hang()                 { d.set(func() { d.hangs = true }) }
func (d *disk) fail(e unix.Errno)     { d.set(func() { d.delay, d.hangs, d.errno = 0, false, e }) }
func (d *disk) well()                 { d.slow(0) }

// synced is how many syncs there were.
func (d *disk) synced() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func (d *disk) set(how func()) {
	d.mu.Lock()
	how()
	d.mu.Unlock()
	d.turn.Broadcast()
}

func (d *disk) accept() {
	for {
		c, err := d.door.AcceptUnix()
		if err != nil {
			return // closed
		}
		d.wait.Go(func() {
			fd, err := receiveFilter(c)
			_ = c.Close()
			if err != nil {
				return // the process says why
			}
			d.watch(fd)
			_ = unix.Close(fd)
		})
	}
}

func receiveFilter(c *net.UnixConn) (int, error) {
	b, oob := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("no filter came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(err, errors.New("no filter came"))
	}
	return fds[0], nil
}

// notice and verdict are the kernel's struct seccomp_notif and seccomp_notif_resp.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type verdict struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// watch answers the calls of one process until it has ended.
func (d *disk) watch(fd int) {
	var calls sync.WaitGroup
	defer calls.Wait()
	gone := make(chan struct{})
	defer func() { close(gone); d.turn.Broadcast() }()
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 || poll[0].Revents&unix.POLLIN == 0 {
			return
		}
		var in notice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&in))); errno != 0 {
			continue // the call was interrupted
		}
		calls.Go(func() {
			v := verdict{id: in.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
			if errno := d.sync(gone); errno != 0 {
				v.errno, v.flags = -int32(errno), 0
			}
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
		})
	}
}

// sync is one call: it returns when it may go on.
func (d *disk) sync(gone <-chan struct{}) unix.Errno {
	d.mu.Lock()
	d.calls++
	delay := d.delay
	d.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay) // the disk's own slowness
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.hangs && !d.closed && !isClosed(gone) {
		d.turn.Wait()
	}
	return d.errno
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// playBorder installs the filter, hands it over and becomes the program.
func playBorder(socket string, argv []string) int {
	runtime.LockOSThread()
	err := handOver(socket)
	if err == nil {
		err = syscall.Exec(argv[0], argv, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "border:", err)
	return 1
}

func handOver(socket string) error {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 2, K: unix.SYS_FSYNC},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_FDATASYNC},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("install the filter: %w", errno)
	}
	_, _, err = c.WriteMsgUnix([]byte{1}, unix.UnixRights(int(fd)), nil)
	return err
}
