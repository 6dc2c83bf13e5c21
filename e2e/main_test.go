package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// roleVar makes the test binary play a process of the benchmark instead of testing.
const roleVar = "IOP_E2E_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	if len(os.Args) > 1 && os.Args[1] == agentCommand {
		os.Exit(playAgent(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == talkCommand {
		os.Exit(playTalk(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == badAgentCommand {
		os.Exit(playBadAgent(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 3 && os.Args[1] == guideForwardCommand {
		os.Exit(playGuideForward(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 3 && os.Args[1] == borderCommand {
		os.Exit(playBorder(os.Args[2], os.Args[3:]))
	}
	dir, err := os.MkdirTemp("", "iop-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a directory for the binaries:", err)
		os.Exit(1)
	}
	built.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built are the programs under test, built at the first need.
var built binaries

type binaries struct {
	dir  string
	once sync.Once
	err  error
}

// program returns the path of edged, noded or iopctl.
func program(t testing.TB, name string) string {
	t.Helper()
	built.once.Do(func() { built.err = buildAll(built.dir) })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, name+exe())
}

func buildAll(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if os.Getenv("E2E_RACE") == "1" {
		args = append(args, "-race")
	}
	args = append(args, "iop/edged/cmd/edged", "iop/noded/cmd/noded", "iop/cli/cmd/iopctl")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
