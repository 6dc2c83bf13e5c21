package noded

import (
	"strings"
	"testing"

	"iop/proto/nodepb"
)

const anyProgram = "any program that the edge's configuration names can be started here"

func agent(command string) *nodepb.NodeConfigPayload {
	p := one("p", "cli", "", nil)
	p.Adapters[0].Type, p.Adapters[0].Command = "cli", []string{command}
	return p
}

func TestAnAgentThatIsNotListedIsBrokenAndItsProviderDegraded(t *testing.T) {
	n := newNode(t)
	n.build.dataDir, n.build.keeper, n.build.commands = t.TempDir(), []string{"keeper"}, []string{"codex"}
	n.configure(1, agent("evil-program"))
	if c := n.wantReported("p", true); !strings.Contains(c.cause, "evil-program is not under commands: in the node file") {
		t.Errorf("the cause is %q", c.cause)
	}
	if _, end := n.run("p"); end.Code != codeMisconfigured {
		t.Errorf("a run of it ends with %+v", end)
	}
	if strings.Contains(n.log.String(), anyProgram) {
		t.Error("warned although programs are listed")
	}
}

func TestANodeWithoutAListWarnsOnceOfCommands(t *testing.T) {
	n := newNode(t)
	n.build.dataDir, n.build.keeper = t.TempDir(), []string{"keeper"}
	n.configure(1, one("p", "openai_compat", "http://127.0.0.1:1/v1", nil))
	if strings.Contains(n.log.String(), anyProgram) {
		t.Error("warned without a command")
	}
	n.configure(2, agent("evil-program"))
	n.configure(3, agent("other-program"))
	if c := strings.Count(n.log.String(), anyProgram); c != 1 {
		t.Errorf("warned %d times:\n%s", c, n.log.String())
	}
}
