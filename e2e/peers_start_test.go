package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peer is a gateway that can be put in front of a backend.
type peer struct {
	name    string
	ours    bool
	partial bool   // what becomes of it after kill -9, and its speed, could not be measured: see docs/COMPARISON.md
	version string // as found
	find    func() string
	start   func(t *testing.T, s setting) *gateway
}

// setting is what a trial asks of a gateway. What a gateway has no word for it does not get.
type setting struct {
	backend  string // host:port
	capacity int
	queue    int           // longest queue
	timeout  time.Duration // longest wait
	speed    bool          // nothing of the test may be in the way
}

// gateway is one that runs.
type gateway struct {
	address   func() string
	header    http.Header       // that clients have to send
	processes func() []*process // that work for it
	kill      func()            // kill -9
	restart   func()            // after kill
	reload    func()            // a configuration with one route more, until it is in effect; nil = there is none
}

func peers() []peer {
	return []peer{
		{name: "iop", ours: true, find: foundOurs, start: startOurs},
		{name: "HAProxy", find: found("haproxy", "-v", `version (\S+)`), start: startHAProxy},
		{name: "nginx", find: found("nginx", "-v", `nginx/(\S+)`), start: startNginx},
		{name: "Caddy", find: found("caddy", "build-info", `caddyserver/caddy/v2\s+v(\S+)`), start: startCaddy},
		{name: "Portkey", partial: true, find: foundPortkey, start: startPortkey},
		{name: "ReverseProxy", find: goVersion, start: startReverseProxy},
	}
}

// found asks a program for its version, and is empty if there is none.
func found(program, argument, version string) func() string {
	return func() string {
		out, err := exec.Command(program, argument).CombinedOutput()
		if m := regexp.MustCompile(version).FindSubmatch(out); err == nil && m != nil {
			return string(m[1])
		}
		return ""
	}
}

func foundOurs() string {
	out, err := exec.Command("git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "of this directory"
	}
	return strings.TrimSpace(string(out))
}

func goVersion() string {
	out, err := exec.Command("go", "env", "GOVERSION").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// portkeyVar is the path of @portkey-ai/gateway as npm installed it.
const portkeyVar = "E2E_PORTKEY"

func foundPortkey() string {
	dir := os.Getenv(portkeyVar)
	if dir == "" {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if m := regexp.MustCompile(`"version": "([^"]+)"`).FindSubmatch(b); err == nil && m != nil {
		return string(m[1])
	}
	return ""
}

func startOurs(t *testing.T, s setting) *gateway {
	w := newWorld(t, layout{
		providers: []provider{{id: "p1", url: "http://" + s.backend + "/v1", capacity: s.capacity}},
		models:    map[string][]string{"a": {"p1"}, "b": {"p1"}, "m": {"p1"}},
		queue:     s.queue, timeout: s.timeout, throttled: !s.speed, log: "info",
	})
	n := 0
	return &gateway{
		address:   func() string { return w.edge.openai },
		processes: func() []*process { return []*process{w.edge.process, w.nodes["n1"]} },
		kill:      func() { w.edge.kill() },
		restart:   func() { w.restartEdge(); w.awaitLink("n1") },
		reload: func() {
			n++
			w.apply(func(l *layout) { l.models[fmt.Sprint("more", n)] = []string{"p1"} })
		},
	}
}

// foreign is a gateway of others: one process, one configuration file, one port.
type foreign struct {
	t        *testing.T
	name     string
	template string // in testdata/peers; "" = none
	setting  setting
	dir      string
	port     int
	admin    int
	revision int
	command  func(f *foreign) *exec.Cmd
	process  *process
}

func (f *foreign) file() string { return filepath.Join(f.dir, f.template) }

// write renders the configuration with a revision.
func (f *foreign) write() {
	f.t.Helper()
	f.revision++
	b, err := os.ReadFile(filepath.Join("testdata", "peers", f.template))
	if err != nil {
		f.t.Fatal(err)
	}
	text := strings.NewReplacer("TIMEOUT_MS", strconv.FormatInt(f.setting.timeout.Milliseconds(), 10), "REVISION", strconv.Itoa(f.revision),
		"CAPACITY", strconv.Itoa(f.setting.capacity), "BACKEND", f.setting.backend, "QUEUE", strconv.Itoa(f.setting.queue),
		"ADMIN", strconv.Itoa(f.admin), "PORT", strconv.Itoa(f.port), "DIR", f.dir).Replace(string(b))
	if err := os.WriteFile(f.file()+".new", []byte(text), 0o644); err != nil { //nolint:gosec // workers of another user read it
		f.t.Fatal(err)
	}
	if err := os.Rename(f.file()+".new", f.file()); err != nil {
		f.t.Fatal(err)
	}
}

// run starts the gateway and waits until it answers.
func (f *foreign) run() {
	f.t.Helper()
	c := f.command(f)
	env := append(c.Env, "HOME="+f.dir, "XDG_DATA_HOME="+f.dir, "XDG_CONFIG_HOME="+f.dir)
	f.process = spawn(f.t, f.name, env, c.Path, c.Args[1:]...)
	f.t.Cleanup(func() { f.end() })
	await(f.t, f.name+" answers", func() bool {
		if !f.process.running() {
			f.t.Fatalf("%s ended: %s", f.name, tail(f.process.out.String(), 20))
		}
		if f.template == "" {
			c, err := net.Dial("tcp", f.address())
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		}
		return f.inEffect()
	})
}

// end kills the process with its workers.
func (f *foreign) end() {
	if !f.process.running() {
		return
	}
	workers := children(f.process.cmd.Process.Pid)
	_ = f.process.cmd.Process.Kill()
	for _, pid := range workers { // they hold its output open, for the end of which kill waits
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	f.process.kill()
}

func (f *foreign) address() string { return "127.0.0.1:" + strconv.Itoa(f.port) }

// inEffect tells whether the last configuration answers.
func (f *foreign) inEffect() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.address()+"/revision/"+strconv.Itoa(f.revision), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	res, err := newClient().Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusTeapot
}

// gateway starts it; reload tells the process of a new configuration.
func (f *foreign) gateway(reload func(f *foreign)) *gateway {
	f.t.Helper()
	f.dir, f.port, f.admin = f.t.TempDir(), freePort(f.t), freePort(f.t)
	if err := os.Chmod(f.dir, 0o755); err != nil { //nolint:gosec // as above
		f.t.Fatal(err)
	}
	if f.template != "" {
		f.write()
	}
	f.run()
	g := &gateway{
		address: f.address,
		processes: func() []*process {
			out := []*process{f.process}
			for _, pid := range children(f.process.cmd.Process.Pid) {
				out = append(out, &process{cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}})
			}
			return out
		},
		kill:    f.end,
		restart: f.run,
	}
	if reload != nil {
		g.reload = func() {
			f.write()
			reload(f)
			await(f.t, f.name+" has its new configuration", f.inEffect)
		}
	}
	return g
}

// must runs a command to its end.
func (f *foreign) must(name string, args ...string) {
	f.t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "HOME="+f.dir)
	if out, err := c.CombinedOutput(); err != nil {
		f.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func startHAProxy(t *testing.T, s setting) *gateway {
	f := &foreign{t: t, name: "haproxy", template: "haproxy.cfg", setting: s, command: func(f *foreign) *exec.Cmd {
		return exec.Command("haproxy", "-W", "-f", f.file())
	}}
	return f.gateway(func(f *foreign) { f.must("kill", "-USR2", strconv.Itoa(f.process.cmd.Process.Pid)) })
}

func startNginx(t *testing.T, s setting) *gateway {
	f := &foreign{t: t, name: "nginx", template: "nginx.conf", setting: s, command: func(f *foreign) *exec.Cmd {
		return exec.Command("nginx", "-e", "stderr", "-c", f.file())
	}}
	return f.gateway(func(f *foreign) { f.must("kill", "-HUP", strconv.Itoa(f.process.cmd.Process.Pid)) })
}

func startCaddy(t *testing.T, s setting) *gateway {
	f := &foreign{t: t, name: "caddy", template: "Caddyfile", setting: s, command: func(f *foreign) *exec.Cmd {
		return exec.Command("caddy", "run", "--config", f.file())
	}}
	return f.gateway(func(f *foreign) { f.must("caddy", "reload", "--config", f.file()) })
}

func startPortkey(t *testing.T, s setting) *gateway {
	f := &foreign{t: t, name: "portkey", setting: s, command: func(f *foreign) *exec.Cmd {
		c := exec.Command("node", filepath.Join(os.Getenv(portkeyVar), "build", "start-server.js"), "--headless", "--port="+strconv.Itoa(f.port))
		c.Env = []string{"NODE_ENV=production"}
		return c
	}}
	g := f.gateway(nil)
	g.header = http.Header{
		"X-Portkey-Provider": {"openai"}, "X-Portkey-Custom-Host": {"http://" + s.backend + "/v1"}, "Authorization": {"Bearer none"},
	}
	return g
}

// startReverseProxy is the standard library's, as BenchmarkGateway has it.
func startReverseProxy(t *testing.T, s setting) *gateway {
	p, address := startRole(t, "proxy", s.backend)
	return &gateway{
		address:   func() string { return address },
		processes: func() []*process { return []*process{p} },
		kill:      func() { p.kill() },
		restart:   func() { p, address = startRole(t, "proxy", s.backend) },
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// children are the processes that a process has started, by /proc.
func children(pid int) []int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, s := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}
