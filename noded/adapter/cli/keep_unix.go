//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Keep is the life of a run's keeper, a process between noded and a command. Main calls it at once when the command line is
// the one in Config.Keeper. It starts the command, ends it and everything below it when it is told to or when noded is gone,
// removes the run's directory, and returns the exit code of its own process when nothing is left.
func Keep() int {
	// The command is told by the kernel when the thread that started it is gone (Linux): this one stays.
	runtime.LockOSThread()
	// The keeper is ended by the end of its pipe alone. Caught signals go back to their default in the command.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	syscall.CloseOnExec(ordersFD)
	syscall.CloseOnExec(reportFD)
	k := &keep{orders: bufio.NewReader(os.NewFile(ordersFD, "orders")), report: os.NewFile(reportFD, "report")}
	o, err := k.order()
	if err != nil {
		return 1
	}
	defer removeDir(o.Dir)
	k.grace = time.Duration(o.GraceMS) * time.Millisecond
	adopt()
	pid, err := k.start(o)
	if err != nil {
		k.say(keeperSays{Failed: err.Error(), TooLong: errors.Is(err, syscall.E2BIG)})
		return 1
	}
	k.family.leader = pid
	k.say(keeperSays{Started: true, PID: pid})
	go k.obey()
	status := k.reap(pid)
	removeDir(o.Dir)
	k.say(ended(status))
	return 0
}

// keep is a keeper at work.
type keep struct {
	orders *bufio.Reader
	report *os.File
	family family
	grace  time.Duration
	ending sync.Once
}

func (k *keep) order() (order, error) {
	var o order
	line, err := k.orders.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	return o, err
}

// say tells the node. A node that is gone hears nothing, which changes nothing.
func (k *keep) say(s keeperSays) {
	if line, err := json.Marshal(s); err == nil {
		_, _ = k.report.Write(append(line, '\n'))
	}
}

// start starts the command and lets go of its standard streams, which are the command's alone from here on.
func (k *keep) start(o order) (pid int, err error) {
	p, err := os.StartProcess(o.Program, append([]string{o.Program}, o.Args...), &os.ProcAttr{
		Dir: o.Dir, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: childAttributes(),
	})
	if err != nil {
		return 0, err
	}
	pid = p.Pid
	_ = p.Release() // reap waits for it
	_, _, _ = os.Stdin.Close(), os.Stdout.Close(), os.Stderr.Close()
	return pid, nil
}

// obey follows the node's orders until it closes the pipe or dies.
func (k *keep) obey() {
	for {
		b, err := k.orders.ReadByte()
		if err != nil {
			k.family.kill()
			return
		}
		if b == orderStop {
			k.end()
		}
	}
}

// end asks all to end, and kills what is left after the grace.
func (k *keep) end() {
	k.ending.Do(func() {
		k.family.signal(syscall.SIGTERM)
		k.family.signal(syscall.SIGCONT) // one that is stopped can't hear it
		time.AfterFunc(k.grace, k.family.kill)
	})
}

// reap takes in every process that ends below the keeper, until there is none. When the command itself has ended, what it
// has left behind is ended too.
func (k *keep) reap(pid int) syscall.WaitStatus {
	var status, ws syscall.WaitStatus
	for {
		got, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: none is left
			k.family.awaitGone()
			return status
		case got == pid && (ws.Exited() || ws.Signaled()):
			status = ws
			go k.end()
		}
	}
}

func ended(s syscall.WaitStatus) keeperSays {
	if s.Signaled() {
		return keeperSays{Code: -1, Signal: s.Signal().String()}
	}
	return keeperSays{Code: s.ExitStatus()}
}
