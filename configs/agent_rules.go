package configs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// variable is what might be meant as a variable of a command.
	variable = regexp.MustCompile(`\{[a-z_]+\}`)
	// absolute is a path that means the same wherever noded was started: of unix, or of Windows.
	absolute = regexp.MustCompile(`^(/|[A-Za-z]:[\\/])`)
)

// commandVariables are those that noded/adapter/cli fills.
var commandVariables = []string{"{prompt}", "{model}", "{system}", "{dir}", "{schema}", "{schema_file}"}

// shells are programs that take an argument apart: a client's prompt in it would be run.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "cmd", "powershell", "pwsh"}

func (a *Adapter) checkAgent(r *report, at string) {
	if a.Type != AdapterCLI || len(a.Command) == 0 || r.failed(at+".command") {
		return
	}
	c := a.Agent()
	a.checkCommand(r, at+".command", c)
	if a.CLI != nil {
		c.checkReading(r, at+".cli")
		c.checkEnv(r, at+".cli.env")
		if s := c.Scratch; s != "" && !absolute.MatchString(s) && !r.failed(at+".cli.scratch") {
			r.problem(at+".cli.scratch", shorten(s)+" is not an absolute path", "begin with / (on Windows with a drive): it is a directory on the node")
		}
	}
}

func (a *Adapter) checkCommand(r *report, at string, c CLI) {
	if strings.TrimSpace(a.Command[0]) == "" {
		return // reported
	}
	given := a.commandHas("{prompt}")
	switch {
	case variable.MatchString(a.Command[0]):
		r.problem(at, "the program's name has a variable", "variables stand in the arguments only; name the program")
	case c.Prompt == PromptArgument && !given:
		r.problem(at, "has no {prompt}, while the prompt is to be an argument", "add {prompt} where the prompt belongs, or set cli.prompt: stdin")
	case c.Prompt == PromptStdin && given:
		r.problem(at, "has {prompt}, while the prompt is to come on stdin", "remove {prompt}, or set cli.prompt: argument")
	case a.isShell() && (given || a.commandHas("{system}") || a.commandHas("{schema}")):
		r.problem(at, "gives a client's text to a shell, which would run what is in it", "call the program itself, with the text as an argument of its own or on stdin")
	}
	for _, arg := range a.Command[1:] {
		for _, name := range variable.FindAllString(arg, -1) {
			if !slices.Contains(commandVariables, name) {
				r.warn(at, fmt.Sprintf("%s is no variable and stays as it is; %s", name, didYouMean(name, commandVariables, "there are "+strings.Join(commandVariables, " "))))
			}
		}
	}
}

func (a *Adapter) isShell() bool {
	name := path.Base(strings.ReplaceAll(a.Command[0], `\`, "/"))
	return slices.Contains(shells, strings.ToLower(strings.TrimSuffix(strings.ToLower(name), ".exe")))
}

func (c *CLI) checkReading(r *report, at string) {
	if r.failed(at + ".parser") {
		return
	}
	if c.Dialect != "" && c.Parser != ParserLines && !r.failed(at+".dialect") {
		r.problem(at+".dialect", fmt.Sprintf("means nothing to the parser %s", c.Parser), "remove it, or set parser: json_lines")
	}
	if c.Fields == nil || r.failed(at+".fields") {
		return
	}
	switch {
	case c.Parser == ParserText:
		r.problem(at+".fields", "means nothing to the parser text", "remove it, or set parser: json_lines or sse")
	case c.Dialect != "":
		r.problem(at+".fields", "is given beside dialect", "keep one: a dialect knows where its fields are")
	case c.Fields.Text == "" && c.Fields.Final == "":
		r.problem(at+".fields", "says not where the answer is", "give text (pieces) or final (the whole)")
	}
}

func (c *CLI) checkEnv(r *report, at string) {
	names := newUniques(r)
	for i, name := range c.Env {
		path := indexPath(at, i)
		switch {
		case r.failed(path):
		case !envName.MatchString(name):
			r.problem(path, "is not the name of an environment variable", "write the name only, for example OPENAI_API_KEY; the node holds the value")
		case strings.HasPrefix(strings.ToUpper(name), "IOP_"):
			r.problem(path, "is a variable of iop itself, which no command may see", "give the command a variable of its own")
		}
		names.add(path, name, "the variable "+shorten(name), "name each once")
	}
}
