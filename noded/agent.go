package noded

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"iop/configs"
	"iop/noded/adapter"
	"iop/noded/adapter/cli"
	"iop/proto/nodepb"
)

// keepCommand is the first argument of a process that keeps the command of a run: see cli.Keep.
const keepCommand = "keep-command"

// Keep runs the keeper of a command and returns its exit code, if that is what this process was started for. A program
// that hands Keeper to a Daemon calls it before anything else.
func Keep(args []string) (code int, keeps bool) {
	if len(args) != 2 || args[1] != keepCommand {
		return 0, false
	}
	return cli.Keep(), true
}

// Keeper is the command line by which this program starts itself as a keeper; the program's main must call Keep. It is
// empty where no keeper is needed.
func Keeper() []string {
	switch runtime.GOOS {
	case "windows":
		return nil
	case "linux":
		// The file that runs, even after an update has put another in its place.
		return []string{"/proc/self/exe", keepCommand}
	}
	path, err := os.Executable()
	if err != nil {
		return nil // then adapters of type cli say that there is no keeper
	}
	return []string{path, keepCommand}
}

// agentPlan gathers what the command of a cli adapter is run with. missing are the variables that nobody gives.
func (b builder) agentPlan(c *nodepb.AdapterConfig) (plan cli.Config, missing []string, err error) {
	s := agentSettings(c.GetSettings())
	plan = cli.Config{
		Command: c.GetCommand(), Prompt: cli.Feed(s["prompt"]), Parser: cli.Parser(s["parser"]), Dialect: cli.Dialect(s["dialect"]),
		Fields: s.fields(), Scratch: s["scratch"], Keeper: b.keeper, Allowed: b.commands,
	}
	if plan.Scratch == "" {
		plan.Scratch = b.scratch()
	}
	plan.Env, plan.Secrets, missing = cli.Environment(b.look, strings.Fields(s["env"]))
	var timeout, grace int64
	for name, to := range map[string]*int64{"timeout_ms": &timeout, "grace_ms": &grace, "output_max_bytes": &plan.OutputMax} {
		if *to, err = s.number(name); err != nil {
			return plan, missing, err
		}
	}
	plan.Timeout, plan.Grace = time.Duration(timeout)*time.Millisecond, time.Duration(grace)*time.Millisecond
	return plan, missing, nil
}

// scratch is where runs get their directories if the configuration does not say.
func (b builder) scratch() string {
	if b.dataDir != "" {
		return filepath.Join(b.dataDir, "runs")
	}
	return filepath.Join(os.TempDir(), "iop-runs")
}

// look finds the value of a variable: in the node file, else in noded's environment. What is noded's own there, its token
// above all, is no key of a backend, whatever the edge says.
func (b builder) look(name string) (string, bool) {
	if v, ok := b.keys[name]; ok {
		return v.Reveal(), true
	}
	if strings.HasPrefix(strings.ToUpper(name), "IOP_") {
		return "", false
	}
	return b.env(name)
}

// agentSettings are the settings of a cli adapter in the payload, as the edge writes them: edged/payload_agent.go. Names
// that are not known are of a newer edge.
type agentSettings map[string]string

func (s agentSettings) fields() *cli.Fields {
	f := cli.Fields{
		Text: s["fields.text"], Final: s["fields.final"], Reasoning: s["fields.reasoning"], Finish: s["fields.finish"],
		Error: s["fields.error"], PromptTokens: s["fields.prompt_tokens"], CompletionTokens: s["fields.completion_tokens"],
	}
	if f == (cli.Fields{}) {
		return nil
	}
	return &f
}

func (s agentSettings) number(name string) (int64, error) {
	text := s[name]
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("setting %s: %q is not a number from 0", name, text)
	}
	return n, nil
}

func (b builder) makeAgent(c *nodepb.AdapterConfig) (adapter.Adapter, error) {
	plan, missing, err := b.agentPlan(c)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the variable %s of the command is not there; give it under env: in the node file or in noded's environment, and restart noded", strings.Join(missing, ", "))
	}
	a, err := cli.New(plan)
	if err != nil {
		return nil, err
	}
	if err := a.Permitted(); err != nil {
		return nil, err
	}
	return a, nil
}

// hasAgents reports whether a configuration has adapters that start commands.
func hasAgents(p *nodepb.NodeConfigPayload) bool {
	return slices.ContainsFunc(p.GetAdapters(), func(a *nodepb.AdapterConfig) bool { return a.GetType() == string(configs.AdapterCLI) })
}
