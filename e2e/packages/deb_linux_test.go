package packages

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// debsLive is a package's life on a machine: installed, configured, upgraded, removed, put back, purged.
func debsLive(t *testing.T, was, is string) {
	m := boot(t, was, is)
	old, next := "/mnt/"+filepath.Base(was)+"/", "/mnt/"+filepath.Base(is)+"/"
	for _, part := range []struct {
		name string
		of   func(*machine)
	}{
		{"install", func(m *machine) { m.installs(old) }},
		{"closed", (*machine).isClosed},
		{"configure", (*machine).configures},
		{"upgrade", func(m *machine) { m.upgrades(next) }},
		{"new conffile", func(m *machine) { m.keepsTheUsersFile(next) }},
		{"stopped stays stopped", func(m *machine) { m.staysStopped(next) }},
		{"remove", func(m *machine) { m.removes(next) }},
		{"purge", (*machine).purges},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.of(&machine{t: t, init: m.init}) }) {
			return // what follows builds on it
		}
	}
}

// A fresh edge answers on its own machine; a node without a file is not started, and is no failure.
func (m *machine) installs(from string) {
	m.do("dpkg -i " + from + "*.deb")
	m.says("systemctl is-enabled iop-edged iop-noded", "enabled\nenabled")
	m.says("systemctl is-active iop-edged iop-noded", "active\ninactive")
	m.says("systemctl --failed --no-legend", "")
	m.becomes("runuser -u iop-edge -- edged health --ready --config /etc/iop/edge.yaml")
	m.says("stat -c '%a %U:%G' /etc/iop/edge.yaml /etc/iop/edged.env /var/lib/iop-edged", "640 root:iop-edge\n640 root:root\n755 iop-edge:iop-edge")
	m.says("stat -c %U /proc/$(systemctl show -P MainPID iop-edged)", "iop-edge")
	m.do("systemd-analyze verify iop-edged.service iop-noded.service")
	if said := m.do("iopctl status"); !strings.Contains(said, "edge-1") {
		m.t.Errorf("status: %s", said)
	}
	m.says("edged --version; noded --version", "edged v0.0.1\nnoded v0.0.1")
	m.do("iopctl version | grep -F v0.0.1")
	m.do("test -s /usr/share/bash-completion/completions/iopctl && test -s /usr/share/zsh/vendor-completions/_iopctl && test -s /usr/share/fish/vendor_completions.d/iopctl.fish")
	build := "noded-linux-" + runtime.GOARCH
	m.says("curl -fsS -o /tmp/x http://127.0.0.1:8080/bootstrap/"+build+" && cmp /tmp/x /usr/lib/iop/noded-builds/"+build+" && echo same", "same")
}

// What the unit says is so: no capability, none to be had, a filter for system calls, and nothing to write but the state.
func (m *machine) isClosed() {
	pid := m.do("systemctl show -P MainPID iop-edged")
	m.says("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/"+pid+"/status | tr '\\t' ' '",
		"CapEff: 0000000000000000\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2")
	m.says("nsenter -t "+pid+" -m sh -c 'touch /usr/x /etc/iop/x /root/x 2>&1 | grep -c -e Read-only -e denied -e \"No such\"'", "3")
	m.do("nsenter -t " + pid + " -m touch /var/lib/iop-edged/x && rm /var/lib/iop-edged/x")
}

const nodesAndModels = `
models:
  - { id: demo, providers: { demo-backend: demo-words } }
nodes:
  - id: demo-node
    token_hash_sha256: "4f1b88aaebe43c84edab9fa289635b62daf83b3d8926337af0e8edd84bf4c47d"
    adapters: [{ id: demo, type: demo, demo: { words: 3 } }]
    providers: [{ id: demo-backend, type: demo, adapter: demo, models: [demo-words], capacity: 2 }]
`

// The user's configuration is applied by a reload, and a node file that root wrote for himself is given to the node.
func (m *machine) configures() {
	m.do("sed -i '/^models:/d; /^nodes:/d; s/^# The edge of this machine.*/# mine/' /etc/iop/edge.yaml && cat >>/etc/iop/edge.yaml <<'END'" + nodesAndModels + "END")
	m.do("systemctl reload iop-edged")
	m.do("umask 077 && cat >/etc/iop/node.yaml <<'END'\nnode: { id: demo-node, token: \"${IOP_NODE_TOKEN}\", edges: [\"127.0.0.1:7443\"], data_dir: /var/lib/iop-noded }\nEND\n" +
		"echo IOP_NODE_TOKEN=demo-node-token >>/etc/iop/noded.env && systemctl start iop-noded")
	m.becomes("iopctl providers list -o json | tr -d ' \\n' | grep -q '\"connected\":true'")
	m.says("stat -c '%a %U' /etc/iop/node.yaml", "600 iop-node")
	m.says("stat -c %U /proc/$(systemctl show -P MainPID iop-noded)", "iop-node")
	m.asks()
	m.do("iopctl providers drain demo-backend")
}

// asks has a model answer.
func (m *machine) asks() {
	m.do(`curl -fsS http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"demo","messages":[{"role":"user","content":"Hello"}]}' | grep -q '"finish_reason":"stop"'`)
}

// What ran runs the new program, over the same data and the user's configuration.
func (m *machine) upgrades(to string) {
	config, pid := m.do("sha256sum /etc/iop/*"), m.do("systemctl show -P MainPID iop-edged")
	counted := m.do("iopctl usage -o json | grep -c demo || true")
	m.do("dpkg -i " + to + "*.deb")
	m.says("sha256sum /etc/iop/*", config)
	m.says("edged --version", "edged v0.0.2-3-gabc")
	m.says("systemctl is-active iop-edged iop-noded", "active\nactive")
	if m.do("systemctl show -P MainPID iop-edged") == pid {
		m.t.Error("the edge was not restarted")
	}
	m.says("readlink /proc/$(systemctl show -P MainPID iop-edged)/exe /proc/$(systemctl show -P MainPID iop-noded)/exe", "/usr/bin/edged\n/usr/bin/noded")
	m.becomes("iopctl providers list -o json | tr -d ' \\n' | grep -q '\"connected\":true'")
	m.isDrained()
	m.says("iopctl usage -o json | grep -c demo || true", counted)
	m.do("iopctl providers undrain demo-backend")
	m.asks()
	m.do("iopctl providers drain demo-backend")
}

// isDrained: the log of before is there, and not a new one.
func (m *machine) isDrained() {
	m.becomes("iopctl providers list -o json | tr -d ' \\n' | grep -q '\"draining\":true'")
}

// A package with another conffile does not put it over the user's.
func (m *machine) keepsTheUsersFile(next string) {
	m.do("mkdir -p /root/re && cd /root/re && dpkg-deb -R " + next + "iop-edge_*.deb x && echo '# new words' >>x/etc/iop/edge.yaml && " +
		"sed -i 's/^Version: .*/&+again/; s/^Depends:.*/Depends: iopctl/' x/DEBIAN/control && dpkg-deb -b x again.deb")
	config := m.do("sha256sum /etc/iop/edge.yaml")
	m.do("dpkg --force-confdef --force-confold -i /root/re/again.deb")
	m.says("sha256sum /etc/iop/edge.yaml", config)
	m.says("tail -1 /etc/iop/edge.yaml.dpkg-dist", "# new words")
	m.says("stat -c '%a %U:%G' /etc/iop/edge.yaml", "640 root:iop-edge")
	m.isDrained()
}

// What the administrator stopped or disabled, an upgrade does not start.
func (m *machine) staysStopped(next string) {
	m.do("systemctl stop iop-edged && systemctl disable iop-noded 2>/dev/null && systemctl stop iop-noded")
	m.do("dpkg --force-downgrade --force-confdef --force-confold -i " + next + "iop-edge_*.deb " + next + "iop-node_*.deb")
	m.says("systemctl is-active iop-edged iop-noded", "inactive\ninactive")
	m.says("systemctl is-enabled iop-edged iop-noded", "enabled\ndisabled")
	m.do("systemctl start iop-edged")
	m.isDrained()
}

// Removing stops it and keeps data and configuration, with which it comes back.
func (m *machine) removes(next string) {
	m.do("dpkg -r iop-edge iop-node")
	m.says("readlink /proc/*/exe | grep -c -e edged -e noded", "0")
	m.do("test -d /var/lib/iop-edged/data && test -f /etc/iop/edge.yaml && test ! -e /usr/bin/edged && test ! -e /lib/systemd/system/iop-edged.service")
	m.do("dpkg -i " + next + "iop-edge_*.deb")
	m.says("systemctl is-active iop-edged", "active")
	m.isDrained()
}

// Purging takes everything; certificates that an administrator put beside it are his.
func (m *machine) purges() {
	m.do("mkdir /etc/iop/certs && touch /etc/iop/certs/key.pem && dpkg -P iop-edge iop-node iop-noded-builds iopctl")
	m.says("find /etc/iop /var/lib/iop-edged /var/lib/iop-noded /usr/lib/iop 2>/dev/null", "/etc/iop\n/etc/iop/certs\n/etc/iop/certs/key.pem")
	m.says("find /etc/systemd /var/lib/systemd/deb-systemd-helper-enabled /var/lib/systemd/deb-systemd-helper-masked -name 'iop*' 2>/dev/null", "")
	m.says("systemctl --failed --no-legend", "")
	if left := m.do("dpkg -l | awk '/iop/ { print $1, $2 }'"); left != "" {
		m.t.Errorf("dpkg knows of %s", left)
	}
	if _, err := os.Stat("/etc/iop/certs/key.pem"); err == nil {
		m.t.Error("it was not in a machine of its own")
	}
}
