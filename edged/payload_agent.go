package edged

import (
	"strconv"
	"strings"

	"iop/configs"
)

// agentSettings is the cli section of an adapter as the node reads it: noded/agent.go. What is absent is left out.
func agentSettings(c configs.CLI) map[string]string {
	out := map[string]string{}
	set := func(name, value string) {
		if value != "" {
			out[name] = value
		}
	}
	number := func(name string, n int64) {
		if n > 0 {
			out[name] = strconv.FormatInt(n, 10)
		}
	}
	set("prompt", string(c.Prompt))
	set("parser", string(c.Parser))
	set("dialect", string(c.Dialect))
	set("env", strings.Join(c.Env, " "))
	set("scratch", c.Scratch)
	number("timeout_ms", int64(c.TimeoutMS))
	number("grace_ms", int64(c.GraceMS))
	number("output_max_bytes", c.OutputMaxBytes)
	if f := c.Fields; f != nil {
		set("fields.text", f.Text)
		set("fields.final", f.Final)
		set("fields.reasoning", f.Reasoning)
		set("fields.finish", f.Finish)
		set("fields.error", f.Error)
		set("fields.prompt_tokens", f.PromptTokens)
		set("fields.completion_tokens", f.CompletionTokens)
	}
	return out
}
