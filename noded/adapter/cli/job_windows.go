package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Keep is for unix: on Windows the kernel keeps the job.
func Keep() int { return 1 }

func keeperNeeded([]string) error { return nil }

// notShell refuses scripts that Windows would run in cmd.exe, which takes arguments apart by rules of its own.
func notShell(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".bat", ".cmd":
		return fmt.Errorf("%s is a script for cmd.exe, and no shell is used; name the program itself, for example node.exe with the script's .js file", filepath.Base(path))
	}
	return nil
}

// process is a running command in a job object that holds all that it has started, and that ends with noded.
type process struct {
	streams
	cmd *exec.Cmd

	mu  sync.Mutex
	job windows.Handle // 0 when closed
}

// start starts a command in a job of its own. An error says that it does not run, and did not.
func start(l launch) (*process, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	p := &process{streams: ours}
	if p.job, err = newJob(); err != nil {
		ours.close()
		return nil, err
	}
	if err := p.begin(l, theirs); err != nil {
		ours.close()
		_ = windows.CloseHandle(p.job)
		return nil, err
	}
	return p, nil
}

// newJob makes a job whose processes are ended when its last handle is closed, which the end of noded does.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("make a job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("set the limits of a job object: %w", err)
	}
	return job, nil
}

// begin starts the command stopped, puts it into the job, and lets it run: so nothing that it starts is outside.
func (p *process) begin(l launch, theirs streams) error {
	p.cmd = exec.Command(l.program, l.args...)
	p.cmd.Dir = l.dir
	p.cmd.Env = append(l.env[:len(l.env):len(l.env)], markVar+"="+l.id)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs.stdin, theirs.stdout, theirs.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, windows.ERROR_FILENAME_EXCED_RANGE) {
			return errTooLong
		}
		return fmt.Errorf("start the command: %w", err)
	}
	if err := p.release(); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return err
	}
	return nil
}

func (p *process) release() error {
	pid := uint32(p.cmd.Process.Pid)
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return fmt.Errorf("open the command's process: %w", err)
	}
	defer func() { _ = windows.CloseHandle(h) }()
	if err := windows.AssignProcessToJobObject(p.job, h); err != nil {
		return fmt.Errorf("put the command into its job: %w", err)
	}
	return resume(pid)
}

// resume lets the threads of a process that was started stopped run.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	e := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &e); err == nil; err = windows.Thread32Next(snapshot, &e) {
		if e.OwnerProcessID != pid {
			continue
		}
		t, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, e.ThreadID)
		if err != nil {
			return fmt.Errorf("open the command's thread: %w", err)
		}
		_, err = windows.ResumeThread(t)
		_ = windows.CloseHandle(t)
		if err != nil {
			return fmt.Errorf("let the command run: %w", err)
		}
	}
	return nil
}

// stop ends all processes of the run. Windows has no way to ask a program without a window.
func (p *process) stop() { p.kill() }

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.job != 0 {
		_ = windows.TerminateJobObject(p.job, 1)
	}
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	totalUserTime, totalKernelTime           int64
	periodUserTime, periodKernelTime         int64
	pageFaults, total, active, terminatedAll uint32
}

const (
	jobBasicAccounting = 1 // JobObjectBasicAccountingInformation
	jobPause           = 20 * time.Millisecond
)

// wait returns when all processes of the run are gone. What the command leaves behind is ended.
func (p *process) wait() exit {
	_ = p.cmd.Wait() // ProcessState tells
	p.kill()
	for p.active() > 0 {
		time.Sleep(jobPause)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = windows.CloseHandle(p.job)
	p.job = 0
	return exit{code: p.cmd.ProcessState.ExitCode()}
}

func (p *process) active() uint32 {
	var a jobAccounting
	if err := windows.QueryInformationJobObject(p.job, jobBasicAccounting, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil); err != nil {
		return 0
	}
	return a.active
}
