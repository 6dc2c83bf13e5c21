package storage

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The disk tests watch a real process at the border to the kernel: a seccomp filter hands each system call that changes
// a file to the test, which notes it down, lets it pass, or has it fail. The process runs the code as it is, bbolt
// included; nothing in it knows of the test. It needs Linux 5.19 and a filter that may be installed.

// call is one system call that changes a file, or a line that the process prints.
type call struct {
	kind   callKind
	path   string
	to     string // of a rename
	offset int64  // of a write
	size   int64  // of a truncate
	data   []byte // of a write
	line   string
}

type callKind int

const (
	callLine callKind = iota
	callWrite
	callTruncate
	callSync
	callCreate
	callRename
	callRemove
	callMkdir
)

func (k callKind) String() string {
	return [...]string{"line", "write", "truncate", "sync", "create", "rename", "remove", "mkdir"}[k]
}

func (c *call) String() string {
	if c.kind == callWrite {
		return fmt.Sprintf("%v %s at %d, %d bytes", c.kind, c.path, c.offset, len(c.data))
	}
	return fmt.Sprintf("%v %s%s%s", c.kind, c.path, c.to, c.line)
}

// supervised are the system calls that the test sees.
var supervised = []uint32{
	unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_PWRITEV, unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE,
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_OPENAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT,
	unix.SYS_MKDIRAT, unix.SYS_FALLOCATE, unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE, unix.SYS_MSYNC,
}

// superviseMe has the process that runs this test watched by who holds the other end of fd 3.
func superviseMe() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for i, nr := range supervised {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(supervised) - i), K: nr})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return unix.Sendmsg(3, []byte{1}, unix.UnixRights(int(fd)), nil, 0)
}

// mayGoOn asks the supervisor whether to do another round.
func mayGoOn() bool {
	b := []byte{0}
	n, _, err := unix.Recvfrom(3, b, 0)
	return err == nil && n == 1 && b[0] == 'g'
}

type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type notificationAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// supervisor sees the calls of one process.
type supervisor struct {
	t        *testing.T
	cmd      *exec.Cmd
	socket   *os.File
	listener int
	root     string
	// see is called for each call below root and each line; an error number makes it fail.
	see func(*call) unix.Errno
}

// supervise starts this test again as a child in the given mode and sees all its calls until it ends.
func supervise(t *testing.T, mode, root string, see func(*call) unix.Errno, prepared func(*supervisor)) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer func() { _ = ours.Close() }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), diskEnv+"="+mode, diskRootEnv+"="+root)
	cmd.ExtraFiles = []*os.File{theirs}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = out
	err = cmd.Start()
	_, _ = theirs.Close(), out.Close()
	if err != nil {
		t.Fatal(err)
	}
	s := &supervisor{t: t, cmd: cmd, socket: ours, root: root, see: see}
	defer func() {
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		if msg := complaints.String(); t.Failed() || err != nil && msg != "" {
			t.Errorf("the process ended with %v: %s", err, msg)
		}
	}()
	if !s.receiveListener() {
		t.Skip("this system does not let a process be watched with seccomp")
	}
	defer func() { _ = unix.Close(s.listener) }()
	if prepared != nil {
		prepared(s)
	}
	s.run()
}

func (s *supervisor) receiveListener() bool {
	c, err := net.FileConn(s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(long))
	b, oob := make([]byte, 1), make([]byte, 64)
	_, n, _, _, err := c.(*net.UnixConn).ReadMsgUnix(b, oob)
	if err != nil || n == 0 {
		return false
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return false
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return false
	}
	s.listener = fds[0]
	return true
}

// goOn lets the process do another round, or tells it to end.
func (s *supervisor) goOn(more bool) {
	b := []byte{'q'}
	if more {
		b[0] = 'g'
	}
	if _, err := unix.Write(int(s.socket.Fd()), b); err != nil {
		s.t.Error(err)
	}
}

func (s *supervisor) run() {
	for {
		poll := []unix.PollFd{{Fd: int32(s.listener), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(long/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			s.t.Fatal(err)
		case n == 0:
			s.t.Fatal("the process makes no more calls and does not end")
		case poll[0].Revents&unix.POLLIN == 0:
			return // it has ended
		}
		var in notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&in))); errno != 0 {
			continue // the call was interrupted, or the process ended
		}
		answer := notificationAnswer{id: in.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if c := s.decode(&in); c != nil {
			if errno := s.see(c); errno != 0 {
				answer.errno, answer.flags = -int32(errno), 0
			}
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(s.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

// decode returns nil for what does not concern a file below the root.
func (s *supervisor) decode(in *notification) *call {
	c := &call{}
	switch in.nr {
	case unix.SYS_WRITE:
		if in.args[0] == 1 {
			return &call{kind: callLine, line: strings.TrimSpace(string(s.memory(in, in.args[1], in.args[2])))}
		}
		c.kind, c.path, c.offset = callWrite, s.fd(in), -1
	case unix.SYS_PWRITE64:
		c.kind, c.path, c.offset = callWrite, s.fd(in), int64(in.args[3])
	case unix.SYS_FTRUNCATE:
		c.kind, c.path, c.size = callTruncate, s.fd(in), int64(in.args[1])
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		c.kind, c.path = callSync, s.fd(in)
	case unix.SYS_OPENAT:
		if in.args[2]&unix.O_CREAT == 0 {
			return nil
		}
		c.kind, c.path = callCreate, s.text(in, in.args[1])
		if in.args[2]&unix.O_TRUNC != 0 {
			c.size = -1
		}
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		c.kind, c.path, c.to = callRename, s.text(in, in.args[1]), s.text(in, in.args[3])
	case unix.SYS_UNLINKAT:
		c.kind, c.path = callRemove, s.text(in, in.args[1])
	case unix.SYS_MKDIRAT:
		c.kind, c.path = callMkdir, s.text(in, in.args[1])
	default:
		if p := s.fd(in); strings.HasPrefix(p, s.root) {
			s.t.Errorf("system call %d on %s is not understood", in.nr, p)
		}
		return nil
	}
	if !strings.HasPrefix(c.path, s.root+"/") && c.path != s.root {
		return nil
	}
	if c.kind == callWrite {
		c.data = s.memory(in, in.args[1], in.args[2])
	}
	return c
}

func (s *supervisor) fd(in *notification) string {
	p, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", in.pid, int32(in.args[0])))
	if err != nil {
		return ""
	}
	return p
}

func (s *supervisor) memory(in *notification, at, n uint64) []byte {
	b := make([]byte, n)
	if n == 0 {
		return b
	}
	got, err := unix.ProcessVMReadv(int(in.pid),
		[]unix.Iovec{{Base: &b[0], Len: n}}, []unix.RemoteIovec{{Base: uintptr(at), Len: int(n)}}, 0)
	if err != nil || got != int(n) {
		s.t.Errorf("read the memory of the process: %v", err)
	}
	return b
}

func (s *supervisor) text(in *notification, at uint64) string {
	// A string ends before its page does, or goes on in the next one, which is there then.
	var out []byte
	for len(out) < 4096 {
		part := s.memory(in, at, 4096-at%4096)
		if i := bytes.IndexByte(part, 0); i >= 0 {
			return string(append(out, part[:i]...))
		}
		out, at = append(out, part...), at+uint64(len(part))
	}
	return string(out)
}
