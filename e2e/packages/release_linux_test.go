package packages

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// platform is what a release is made for here: that of this machine is what can be tried.
const platform = "linux/" + runtime.GOARCH

// release makes a release of the sources in dir and returns where it is.
func release(t *testing.T, dir, version string, env ...string) string {
	t.Helper()
	out := filepath.Join(tempDir(t), version)
	do(t, dir, append([]string{"PLATFORMS=" + platform}, env...), "sh", ".tools/release.sh", out, version)
	return out
}

// sums reads what a release says of its files.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		out[name] = sum
	}
	return out
}

// debs are the packages that a release has, by their names.
func debs(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for file := range sums(t, dir) {
		if name, _, ok := strings.Cut(file, "_"); ok && strings.HasSuffix(file, ".deb") {
			out[name] = filepath.Join(dir, file)
		}
	}
	if got := slices.Sorted(maps.Keys(out)); !slices.Equal(got, []string{"iop-edge", "iop-node", "iop-noded-builds", "iopctl"}) {
		t.Fatalf("packages %v", got)
	}
	return out
}

func TestPackages(t *testing.T) {
	asked(t, "mmdebstrap", "systemd-nspawn", "lintian", "rpm", "systemd-analyze")
	const epoch = "SOURCE_DATE_EPOCH=1700000000"
	was := release(t, root(t), "v0.0.1")
	is := release(t, root(t), "v0.0.2-3-gabc", epoch)
	t.Run("checksums", func(t *testing.T) { do(t, is, nil, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS") })
	t.Run("order", func(t *testing.T) { versionsAreInOrder(t, is) })
	t.Run("again", func(t *testing.T) { sameBytesElsewhere(t, is, epoch) })
	t.Run("lintian", func(t *testing.T) {
		args := []string{"--fail-on", "error,warning", "--allow-root"}
		do(t, "", nil, "lintian", append(args, slices.Collect(maps.Values(debs(t, is)))...)...)
	})
	t.Run("units", func(t *testing.T) { unitsAreClosed(t, is) })
	t.Run("archive", func(t *testing.T) { archiveIsWhole(t, is) })
	t.Run("rpm", func(t *testing.T) { rpmsInstall(t, is) })
	t.Run("deb", func(t *testing.T) { debsLive(t, was, is) })
}

// A commit behind a tag is newer than the tag, and older than the next one and its candidates.
func versionsAreInOrder(t *testing.T, is string) {
	_, version, _ := strings.Cut(filepath.Base(debs(t, is)["iopctl"]), "_")
	version, _, _ = strings.Cut(version, "_")
	for older, newer := range map[string]string{"0.0.2": version, version: "0.0.3~rc.1", "0.0.3~rc.1": "0.0.3"} {
		do(t, "", nil, "dpkg", "--compare-versions", older, "lt", newer)
	}
}

// The same sources at another place, under another umask and another time zone, give the same bytes.
func sameBytesElsewhere(t *testing.T, is, epoch string) {
	elsewhere := filepath.Join(tempDir(t), "a directory", "of another name")
	do(t, root(t), nil, "sh", "-ec", `mkdir -p "$1"; umask 077
		git ls-files -z -co --exclude-standard | xargs -0 sh -c 'd=$0; for f; do [ ! -f "$f" ] || { mkdir -p "$d/$(dirname "$f")"; cp "$f" "$d/$f"; }; done' "$1"`, "sh", elsewhere)
	again := release(t, elsewhere, filepath.Base(is), epoch, "TZ=Asia/Seoul", "GOAMD64=v3", "HOSTNAME=elsewhere")
	for name, sum := range sums(t, is) {
		if got := sums(t, again)[name]; got != sum {
			t.Errorf("%s is not the same when it is made again", name)
		}
	}
	if len(sums(t, again)) != len(sums(t, is)) {
		t.Errorf("files %v, then %v", sums(t, is), sums(t, again))
	}
}

// exposureMax is the worst mark that systemd may give a unit: 0 is closed, 10 is open. It is in tenths.
const exposureMax = "20"

func unitsAreClosed(t *testing.T, is string) {
	dir := tempDir(t)
	for _, deb := range debs(t, is) {
		do(t, "", nil, "dpkg-deb", "-x", deb, dir)
	}
	for _, unit := range []string{"iop-edged.service", "iop-noded.service"} {
		file := filepath.Join(dir, "lib/systemd/system", unit)
		do(t, "", nil, "systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold="+exposureMax, file)
	}
}

func archiveIsWhole(t *testing.T, is string) {
	dir := tempDir(t)
	archives, err := filepath.Glob(filepath.Join(is, "iop_*_linux_"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives %v, %v", archives, err)
	}
	do(t, "", nil, "tar", "-xzf", archives[0], "-C", dir, "--strip-components=1")
	for program, want := range map[string]string{"edged": "edged v0.0.2-3-gabc", "noded": "noded v0.0.2-3-gabc"} {
		if got := strings.TrimSpace(do(t, dir, nil, "./"+program, "--version")); got != want {
			t.Errorf("%s --version: %q, want %q", program, got, want)
		}
	}
	for _, name := range []string{
		"iopctl", "README.md", "LICENSE", "THIRD_PARTY.txt", "examples/edge.yaml", "examples/edge.schema.json", "completions/iopctl.bash",
		"completions/_iopctl", "completions/iopctl.fish", "completions/iopctl.ps1", "services/edged.service",
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	third, err := os.ReadFile(filepath.Join(dir, "THIRD_PARTY.txt"))
	if err != nil || !strings.Contains(string(third), "github.com/hashicorp/raft ") || !strings.Contains(string(third), "Mozilla Public License") {
		t.Errorf("licences of others: %v", err)
	}
}

func rpmsInstall(t *testing.T, is string) {
	rpms, err := filepath.Glob(filepath.Join(is, "*.rpm"))
	if err != nil || len(rpms) != 4 {
		t.Fatalf("packages %v, %v", rpms, err)
	}
	do(t, "", nil, "rpm", append([]string{"--checksig"}, rpms...)...)
	dir := filepath.Join(tempDir(t), "root")
	// There is no systemd package in this root, nor anything to run scripts with: these are read, not run.
	do(t, "", nil, "rpm", append([]string{"--root", dir, "--install", "--nodeps", "--noscripts"}, rpms...)...)
	do(t, "", nil, "rpm", "--root", dir, "--verify", "--nodeps", "--noscripts", "iop-edge", "iop-node", "iopctl", "iop-noded-builds")
	if said := do(t, dir, nil, "chroot", dir, "/usr/bin/edged", "--version"); !strings.Contains(said, "v0.0.2-3-gabc") {
		t.Error(said)
	}
	for _, file := range rpms {
		scripts := do(t, "", nil, "rpm", "--query", "--scripts", "--package", file)
		if daemon := strings.Contains(file, "iop-edge-") || strings.Contains(file, "iop-node-"); daemon != strings.Contains(scripts, "try-restart") {
			t.Errorf("%s: scripts %q", file, scripts)
		}
		for _, tag := range []string{"POSTIN", "PREUN", "POSTUN"} {
			do(t, "", nil, "sh", "-nc", do(t, "", nil, "rpm", "--query", "--queryformat", "%{"+tag+"}", "--package", file))
		}
	}
	config := do(t, "", nil, "rpm", "--root", dir, "--query", "--configfiles", "iop-edge")
	if !strings.Contains(config, "/etc/iop/edge.yaml") || !strings.Contains(config, "/etc/iop/edged.env") {
		t.Errorf("configuration files %q", config)
	}
}
