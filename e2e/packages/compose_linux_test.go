package packages

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// composed is a compose file as compose's own library understands it.
type composed struct {
	Services map[string]*service `json:"services"`

	dir   string
	hosts string
	nets  string // prefix of the names of network namespaces
}

// service is one of a compose file; the image is a directory.
type service struct {
	Build       struct{ Target string }
	Command     []string
	Environment map[string]string
	User        string
	ReadOnly    bool `json:"read_only"`
	Tmpfs       []string
	Healthcheck struct{ Test []string }
	NetworkMode string `json:"network_mode"`
	Volumes     []struct {
		Type, Source, Target string
		ReadOnly             bool `json:"read_only"`
	}
	DependsOn map[string]struct{ Condition string } `json:"depends_on"`

	net     string // network namespace, "" = that of this machine
	image   string
	stage   stage
	volumes string // directory of the named volumes
	hosts   string
}

// compose reads a file of configs/docker, its services with a network of their own each, all on one bridge.
func compose(t *testing.T, i *images, file string) *composed {
	t.Helper()
	dir := tempDir(t)
	reader := filepath.Join(dir, "compose")
	do(t, root(t), []string{"GOFLAGS="}, "go", "build", "-modfile=.tools/release.mod", "-o", reader, "github.com/compose-spec/compose-go/v2/cmd")
	text := do(t, filepath.Join(root(t), "configs/docker"), nil, reader, "-format", "json", file)
	out := &composed{dir: dir, nets: fmt.Sprintf("iop%d-", os.Getpid()), hosts: filepath.Join(dir, "hosts")}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	hosts := "127.0.0.1 localhost\n"
	netns := func(args ...string) { do(t, "", nil, "ip", args...) }
	hub := out.nets + "hub"
	netns("netns", "add", hub)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", hub).Run() })
	netns("-n", hub, "link", "add", "br0", "type", "bridge")
	netns("-n", hub, "link", "set", "br0", "up")
	for n, name := range slices.Sorted(maps.Keys(out.Services)) {
		s := out.Services[name]
		s.stage, s.image = i.stages[s.Build.Target], filepath.Join(i.dir, s.Build.Target)
		s.volumes, s.hosts = filepath.Join(dir, "volumes"), out.hosts
		if other, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok {
			s.net = out.nets + other
			continue
		}
		s.net = out.nets + name
		address := fmt.Sprintf("10.99.0.%d", n+1)
		hosts += address + " " + name + "\n"
		netns("netns", "add", s.net)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", s.net).Run() })
		netns("-n", hub, "link", "add", fmt.Sprintf("v%d", n), "type", "veth", "peer", "name", "eth0", "netns", s.net)
		netns("-n", hub, "link", "set", fmt.Sprintf("v%d", n), "master", "br0", "up")
		netns("-n", s.net, "link", "set", "lo", "up")
		netns("-n", s.net, "address", "add", address+"/24", "dev", "eth0")
		netns("-n", s.net, "link", "set", "eth0", "up")
	}
	if err := os.WriteFile(out.hosts, []byte(hosts), 0o644); err != nil { //nolint:gosec // the services read it
		t.Fatal(err)
	}
	return out
}

// service is one that runs an image with nothing said of it, on this machine's network.
func (i *images) service(t *testing.T, stage, net string) *service {
	t.Helper()
	return &service{stage: i.stages[stage], image: filepath.Join(i.dir, stage), User: i.stages[stage].User, ReadOnly: true, net: net, volumes: tempDir(t)}
}

// command runs a program of the image as an engine would: its root is the image and what is mounted into it, its user that of
// the service, its environment what the two say.
func (s *service) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// A container has a layer of its own over the image, in which the engine makes what mounts need.
	script := "set -e\nroot=" + tempDir(t) + "\nimage=" + s.image + "\nmount -t tmpfs tmpfs $root\nmkdir $root/up $root/work\n" +
		"mount -t overlay -o lowerdir=$image,upperdir=$root/up,workdir=$root/work overlay $root\n"
	if s.hosts != "" {
		script += "mount --bind " + s.hosts + " $root/etc/hosts\n"
	}
	for _, v := range s.Volumes {
		source := v.Source
		if v.Type == "volume" {
			source = filepath.Join(s.volumes, v.Source)
			if _, err := os.Stat(source); err != nil { // a new volume begins as what the image has there
				script += "mkdir -p " + s.volumes + "\ncp -a $root/var/lib/iop " + source + "\n"
			}
		}
		script += "at=$root" + v.Target + "\n"
		script += "if [ -d " + source + " ]; then mkdir -p $at; else touch $at; fi\n"
		script += "mount --bind " + source + " $at\n"
		if v.ReadOnly {
			script += "mount -o remount,bind,ro $at\n"
		}
	}
	for _, at := range s.Tmpfs {
		at, options, _ := strings.Cut(at, ":")
		script += "mount -t tmpfs -o " + options + " tmpfs $root" + at + "\n"
	}
	if s.ReadOnly {
		script += "mount -o remount,ro $root\n"
	}
	uid, gid, _ := strings.Cut(s.User, ":")
	script += "exec unshare --root=$root --wd=" + s.stage.Workdir + " --setgid=" + gid + " --setuid=" + uid + ` "$@"`
	full := append([]string{"--mount", "--pid", "--fork", "--kill-child=SIGTERM", "sh", "-c", script, "sh"}, args...)
	name := "unshare"
	if s.net != "" {
		name, full = "ip", append([]string{"netns", "exec", s.net, "unshare"}, full...)
	}
	c := exec.Command(name, full...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, env := range []map[string]string{s.stage.Env, s.Environment} {
		for k, v := range env {
			if k != "PATH" {
				c.Env = append(c.Env, k+"="+v)
			}
		}
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// do runs a program of the image to its end.
func (s *service) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// up starts the services in the order that they ask for, as compose does, and waits until each is well.
func (c *composed) up(t *testing.T) {
	t.Helper()
	done := map[string]bool{}
	for len(done) < len(c.Services) {
		before := len(done)
		for _, name := range slices.Sorted(maps.Keys(c.Services)) {
			s := c.Services[name]
			ready := !done[name]
			for other := range s.DependsOn {
				ready = ready && done[other]
			}
			if !ready {
				continue
			}
			done[name] = true
			args := append(slices.Clone(s.stage.Entrypoint), s.Command...)
			if s.Build.Target == "iopctl" {
				if len(s.Command) > 0 {
					t.Log(s.do(t, args...))
				}
				continue
			}
			s.start(t, name, args)
		}
		if len(done) == before {
			t.Fatalf("who waits for whom? %v", c.Services)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		if s := c.Services[name]; len(s.Healthcheck.Test) > 0 {
			s.isWell(t, name)
		}
	}
}

func (s *service) start(t *testing.T, name string, args []string) {
	t.Helper()
	p := s.command(t, args...)
	log, err := os.Create(filepath.Join(tempDir(t), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s: %s", name, text)
		}
		_ = log.Close()
	})
}

// isWell waits until the health check of a service succeeds.
func (s *service) isWell(t *testing.T, name string) {
	t.Helper()
	if s.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("%s: %v takes a shell", name, s.Healthcheck.Test)
	}
	await(t, name+" is well", func() (bool, string) {
		out, err := s.command(t, s.Healthcheck.Test[1:]...).CombinedOutput()
		return err == nil, string(out)
	})
}

// answers has an edge's model answer a client that sits beside the services.
func (c *composed) answers(t *testing.T, edge string) {
	t.Helper()
	await(t, edge+" answers", func() (bool, string) {
		out, err := exec.Command("ip", "netns", "exec", c.nets+edge, "curl", "-sS", "-m", "20", "http://127.0.0.1:8080/v1/chat/completions",
			"-H", "Content-Type: application/json", "-d", `{"model":"demo","messages":[{"role":"user","content":"Hello"}]}`).CombinedOutput()
		return err == nil && strings.Contains(string(out), `"finish_reason":"stop"`), string(out)
	})
}

func composeOfOne(t *testing.T, i *images) {
	c := compose(t, i, "compose.yaml")
	c.up(t)
	c.answers(t, "edge")
	if said := c.iopctl(t, i, "edge", "status"); !strings.Contains(said, "edge-1") {
		t.Error(said)
	}
}

func composeOfThree(t *testing.T, i *images) {
	c := compose(t, i, "compose-cluster.yaml")
	c.up(t)
	for _, edge := range []string{"edge-1", "edge-2", "edge-3"} {
		c.answers(t, edge)
	}
	if said := c.iopctl(t, i, "edge-1", "cluster", "members"); strings.Count(said, "edge-") < 3 || strings.Contains(said, "no answer") {
		t.Error(said)
	}
	for _, name := range []string{"certs", "certs-1"} { // up again: what is there is kept
		s := c.Services[name]
		if said := s.do(t, append(slices.Clone(s.stage.Entrypoint), s.Command...)...); !strings.Contains(said, "kept") {
			t.Error(said)
		}
	}
}

// iopctl is what docker compose run --rm iopctl is, in the network of an edge.
func (c *composed) iopctl(t *testing.T, i *images, edge string, args ...string) string {
	t.Helper()
	return i.service(t, "iopctl", c.nets+edge).do(t, append([]string{"/usr/bin/iopctl"}, args...)...)
}
