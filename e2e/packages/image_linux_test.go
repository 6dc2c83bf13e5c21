package packages

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// stage is what .tools/dockerfile, which reads Dockerfiles as BuildKit does, says of one.
type stage struct {
	Name       string
	Base       string
	Run        []string
	User       string
	Workdir    string
	Entrypoint []string
	Health     []string
	Env        map[string]string
}

// images are what the Dockerfile makes: the stages by their names, each with the directory that would be its image.
type images struct {
	dir    string
	stages map[string]stage
}

// build runs what the Dockerfile runs, word for word, over a view of this machine that forgets what was written.
func build(t *testing.T) *images {
	t.Helper()
	var stages []stage
	text := do(t, root(t), []string{"GOFLAGS="}, "go", "run", "-modfile=.tools/release.mod", ".tools/dockerfile/main.go", "configs/docker/Dockerfile")
	if err := json.Unmarshal([]byte(text), &stages); err != nil {
		t.Fatal(err)
	}
	out := &images{dir: tempDir(t), stages: map[string]stage{}}
	for _, s := range stages {
		out.stages[s.Name] = s
	}
	src := filepath.Join(out.dir, "src")
	contextOf(t, src)
	script := `set -e
		work=$1; mkdir "$work/view" "$work/over"
		mount -t tmpfs tmpfs "$work/over"; mkdir "$work/over/up" "$work/over/work"
		mount -t overlay -o "lowerdir=/,upperdir=$work/over/up,workdir=$work/over/work" overlay "$work/view"
		for d in proc dev sys; do mount --rbind "/$d" "$work/view/$d"; done
		mkdir -p "$work/view/src"; mount --bind "$work/src" "$work/view/src"
		chroot "$work/view" sh -ec "$2"
		for f in edged noded iopctl; do cp -a "$work/view/$f-fs" "$work/$f"; chown -R 65532:65532 "$work/$f"; done`
	b := out.stages["build"]
	do(t, "", []string{"TARGETOS=linux", "TARGETARCH=" + runtime.GOARCH, "VERSION=v9.9.9"}, "unshare", "--mount", "sh", "-c", script, "sh", out.dir,
		"cd "+b.Workdir+"\n"+strings.Join(b.Run, "\n"))
	return out
}

// contextOf copies what .dockerignore leaves of the files that git knows or would add.
func contextOf(t *testing.T, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range strings.SplitSeq(do(t, root(t), nil, "git", "ls-files", "-co", "--exclude-standard"), "\n") {
		if name != "" && !ignored(t, string(text), name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(root(t), name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ignored knows the patterns that our .dockerignore has: a path, and **/ before a name.
func ignored(t *testing.T, patterns, name string) bool {
	t.Helper()
	for line := range strings.Lines(patterns) {
		p := strings.TrimSpace(line)
		if p == "" || p[0] == '#' {
			continue
		}
		anywhere, deep := strings.CutPrefix(p, "**/")
		for at := name; at != "."; at = path.Dir(at) {
			match, err := path.Match(anywhere, path.Base(at))
			if err != nil {
				t.Fatal(err)
			}
			if deep && match || !deep && at == p {
				return true
			}
		}
	}
	return false
}

// An image has the program and nothing that could be run beside it, and nobody in it is root.
func TestImages(t *testing.T) {
	asked(t, "unshare", "ip")
	i := build(t)
	for _, name := range []string{"edged", "noded", "iopctl"} {
		s := i.stages[name]
		if s.Base != "scratch" || s.User != "65532:65532" || s.Workdir != "/var/lib/iop" || len(s.Entrypoint) != 1 || s.Entrypoint[0] != "/usr/bin/"+name {
			t.Errorf("stage %+v", s)
		}
		programs := do(t, "", nil, "find", filepath.Join(i.dir, name), "-type", "f", "-perm", "/111", "-printf", "%P\n")
		if strings.TrimSpace(programs) != "usr/bin/"+name {
			t.Errorf("%s: programs %q", name, programs)
		}
		ask := "--version"
		if name == "iopctl" {
			ask = "version"
		}
		if said := i.service(t, name, "").do(t, s.Entrypoint[0], ask); !strings.Contains(said, "v9.9.9") {
			t.Error(said)
		}
	}
	if h := i.stages["edged"].Health; fmt.Sprint(h) != "[CMD /usr/bin/edged health]" {
		t.Errorf("health check %v", h)
	}
	t.Run("compose", func(t *testing.T) { composeOfOne(t, i) })
	t.Run("compose-cluster", func(t *testing.T) { composeOfThree(t, i) })
}
