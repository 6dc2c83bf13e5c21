package configs

import (
	"slices"
	"strings"
)

// CLI says how the command of a cli adapter is run. docs/CONFIG.md tells how a request becomes a prompt.
type CLI struct {
	Prompt         CLIPrompt  `json:"prompt,omitempty" enum:"stdin,argument" doc:"How the command gets the prompt. Absent: argument if the command has {prompt}, else stdin."`
	Parser         CLIParser  `json:"parser,omitempty" enum:"text,json_lines,sse" doc:"How its output is read. Absent: json_lines if the command asks for that (--json, stream-json), else text."`
	Dialect        CLIDialect `json:"dialect,omitempty" enum:"codex,claude,gemini" doc:"json_lines: what the objects mean. Absent: told from the output."`
	Fields         *CLIFields `json:"fields,omitempty" doc:"json_lines, sse: where the answer is in an object, for a command that speaks no dialect. sse without it: OpenAI's chunks."`
	Env            []string   `json:"env,omitempty" doc:"Names of variables that the command sees besides PATH, HOME and the like. Their values are the node's: env: of its file, else its environment."`
	TimeoutMS      Millis     `json:"timeout_ms,omitempty" min:"1000" max:"86400000" doc:"Longest run. Absent: 600000."`
	GraceMS        Millis     `json:"grace_ms,omitempty" min:"1" max:"60000" doc:"Between SIGTERM and SIGKILL. Absent: 2000."`
	OutputMaxBytes int64      `json:"output_max_bytes,omitempty" min:"1024" max:"1073741824" doc:"Most that a run may write to stdout. Absent: 16777216."`
	Scratch        string     `json:"scratch,omitempty" doc:"Directory on the node in which each run gets its own. Absent: runs in the node's data_dir, else iop-runs in the directory for temporary files."`
}

// CLIFields are paths within an object, keys and list indexes with dots between: choices.0.delta.content.
type CLIFields struct {
	Text             string `json:"text,omitempty" doc:"A piece of the answer."`
	Final            string `json:"final,omitempty" doc:"The whole answer; counts if no piece came."`
	Reasoning        string `json:"reasoning,omitempty" doc:"A piece of what it thinks."`
	Finish           string `json:"finish,omitempty" doc:"Why it ends: stop, length or content_filter."`
	Error            string `json:"error,omitempty" doc:"The text of a failure."`
	PromptTokens     string `json:"prompt_tokens,omitempty" doc:"A count."`
	CompletionTokens string `json:"completion_tokens,omitempty" doc:"A count."`
}

// CLIPrompt is how a command gets the prompt.
type CLIPrompt string

// CLIParser is how a command's output is read.
type CLIParser string

// CLIDialect is what the objects of a command's output mean.
type CLIDialect string

// Values that other rooms treat by name.
const (
	PromptStdin    CLIPrompt = "stdin"
	PromptArgument CLIPrompt = "argument"
	ParserText     CLIParser = "text"
	ParserLines    CLIParser = "json_lines"
	ParserSSE      CLIParser = "sse"
)

// Agent gives how the command of a cli adapter is run, with what is absent filled from the command where it says so. The
// limits stay zero: they are the node's to fill.
func (a *Adapter) Agent() CLI {
	var c CLI
	if a.CLI != nil {
		c = *a.CLI
	}
	if c.Prompt == "" {
		c.Prompt = PromptStdin
		if a.commandHas("{prompt}") {
			c.Prompt = PromptArgument
		}
	}
	if c.Parser == "" {
		c.Parser = ParserText
		if slices.Contains(a.Command, "--json") || a.commandHas("stream-json") {
			c.Parser = ParserLines
		}
	}
	return c
}

// commandHas tells whether an argument of the command contains a text.
func (a *Adapter) commandHas(text string) bool {
	return slices.ContainsFunc(a.Command, func(arg string) bool { return strings.Contains(arg, text) })
}
