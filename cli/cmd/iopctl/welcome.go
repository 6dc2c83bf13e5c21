package main

import (
	"fmt"
	"strings"
)

// adminDefault is the address that iopctl asks if none is named.
const adminDefault = "127.0.0.1:9080"

// called is how one calls iopctl in the terminal that reads the welcome; make run, which puts no iopctl into the path, gives
// another word for it by -ldflags "-X main.called=…".
var called = calledPlain

// calledPlain is the word for it that is in the path.
const calledPlain = "iopctl"

// welcome tells how to use what now runs.
func (g *gateway) welcome(openai, admin string) {
	flag := ""
	if admin != adminDefault {
		flag = " --edge " + admin
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("iop is ready. Ask it:")
	line("")
	line(`  curl -N http://%s/v1/chat/completions -H 'Content-Type: application/json' \`, openai)
	line(`    -d '{"model":"%s","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`, demoModel)
	line("")
	line("Look at it from another terminal:")
	line("")
	for _, command := range []string{"status", "top", "queue list", "requests explain"} {
		line("  %s %s%s", called, command, flag)
	}
	line("")
	line("or in a browser: http://%s/", admin)
	line("")
	line("  %-10s a demo built in: it streams made-up words, two requests at a time. With demo:slow in what", demoModel)
	line("  %-10s you say, it takes twenty seconds: say it three times at once, and one waits", "")
	for _, f := range g.backends {
		line("  %-10s found at %s, one request at a time: %s", f.name, f.url, strings.Join(f.models, ", "))
	}
	line("")
	line("The files are in %s. Ctrl-C stops it.", string(g.home))
	// Nobody is left to tell if the terminal is gone; the gateway still serves.
	_, _ = fmt.Fprint(g.stdout, b.String())
}
