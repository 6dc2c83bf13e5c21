//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// The node and a run's keeper talk over two pipes. The node says on the keeper's descriptor 3: one line of JSON, an order,
// then orderStop to ask all processes to end. The end of that pipe, which also comes when the node dies, means: kill them. The
// keeper says on descriptor 4: one line when the command has started or could not be, and one when all is gone.
type order struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Dir     string   `json:"dir"`
	GraceMS int64    `json:"grace_ms"`
}

type keeperSays struct {
	Started bool   `json:"started,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Failed  string `json:"failed,omitempty"`
	TooLong bool   `json:"too_long,omitempty"`
	Code    int    `json:"code"`
	Signal  string `json:"signal,omitempty"`
}

const (
	ordersFD  = 3
	reportFD  = 4
	orderStop = 's'
)

func keeperNeeded(keeper []string) error {
	if len(keeper) == 0 {
		return errors.New("this program can't keep commands: it was built without a keeper for them; use noded")
	}
	return nil
}

// notShell refuses nothing here: a file is run as what it is.
func notShell(string) error { return nil }

// process is a running command with all that it has started.
type process struct {
	streams
	id      string
	cmd     *exec.Cmd // the keeper
	pid     int       // of the command; also its process group
	reports *bufio.Reader
	report  *os.File // what reports reads; closed when all is said

	mu     sync.Mutex
	orders *os.File // nil when closed
}

// start starts a command under a keeper, and returns when it runs. An error says that it does not, and did not.
func start(l launch) (*process, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	p := &process{streams: ours, id: l.id}
	if err := p.startKeeper(l, theirs); err != nil {
		ours.close()
		return nil, err
	}
	if err := p.begin(l); err != nil {
		p.kill()
		_ = p.cmd.Wait() // it has told why
		closeFile(p.report)
		ours.close()
		return nil, err
	}
	return p, nil
}

func (p *process) startKeeper(l launch, theirs streams) error {
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open pipes to the keeper: %w", err)
	}
	defer closeFile(ordersR)
	reportsR, reportsW, err := os.Pipe()
	if err != nil {
		closeFile(ordersW)
		return fmt.Errorf("open pipes to the keeper: %w", err)
	}
	defer closeFile(reportsW)
	p.cmd = exec.Command(l.keeper[0], l.keeper[1:]...)
	p.cmd.Env = append(l.env[:len(l.env):len(l.env)], markVar+"="+l.id)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs.stdin, theirs.stdout, theirs.stderr
	p.cmd.ExtraFiles = []*os.File{ordersR, reportsW} // 3 and 4
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		closeFile(ordersW)
		closeFile(reportsR)
		return fmt.Errorf("start the keeper: %w", err)
	}
	p.orders, p.report, p.reports = ordersW, reportsR, bufio.NewReader(reportsR)
	return nil
}

func closeFile(f *os.File) { _ = f.Close() }

// begin gives the order and waits until the keeper says that the command runs.
func (p *process) begin(l launch) error {
	line, err := json.Marshal(order{Program: l.program, Args: l.args, Dir: l.dir, GraceMS: l.grace.Milliseconds()})
	if err != nil {
		return fmt.Errorf("encode the order: %w", err)
	}
	if _, err := p.orders.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("order the keeper: %w", err)
	}
	said, err := p.hear()
	switch {
	case err != nil:
		return fmt.Errorf("the keeper did not start the command: %w", err)
	case said.TooLong:
		return errTooLong
	case !said.Started:
		return fmt.Errorf("start the command: %s", said.Failed)
	}
	p.pid = said.PID
	return nil
}

func (p *process) hear() (keeperSays, error) {
	var said keeperSays
	line, err := p.reports.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	return said, err
}

// stop asks all processes of the run to end, and has them killed after the grace. It does not wait.
func (p *process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.orders != nil {
		_, _ = p.orders.Write([]byte{orderStop}) // a keeper that is gone needs no order
	}
}

// kill has all processes of the run killed at once. It does not wait.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.orders != nil {
		closeFile(p.orders)
		p.orders = nil
	}
}

// wait returns when all processes of the run are gone.
func (p *process) wait() exit {
	said, err := p.hear()
	x := exit{code: said.Code, signal: said.Signal}
	if err != nil {
		x = exit{code: -1, lost: true}
	}
	_ = p.cmd.Wait() // its exit says nothing that it has not said
	p.kill()
	closeFile(p.report)
	if x.lost {
		sweep(p.id, p.pid)
	}
	return x
}
