package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// badAgentCommand makes the test binary play an agent that does not end by itself: see playBadAgent.
const badAgentCommand = "misbehave"

// playBadAgent leaves its pid as a file's name in dir, starts a child that does the same for each further word, says a
// word, and hangs.
func playBadAgent(dir string, children []string) int {
	if len(children) > 0 {
		self, err := os.Executable()
		if err != nil {
			return 1
		}
		child := exec.Command(self, append([]string{badAgentCommand, dir}, children[1:]...)...)
		if child.Start() != nil {
			return 1
		}
	}
	if os.WriteFile(filepath.Join(dir, strconv.Itoa(os.Getpid())), []byte(strconv.Itoa(len(children))), 0o600) != nil {
		return 1
	}
	fmt.Println("begun")
	time.Sleep(time.Hour)
	return 0
}
