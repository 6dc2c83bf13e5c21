package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
)

// tree is the whole of iopctl, with dev.
func tree() *cobra.Command {
	root := newRoot(Deps{Version: "v1.2.3", Dev: func(context.Context, DevOptions) error { return nil }})
	root.InitDefaultCompletionCmd("bash")
	root.InitDefaultHelpCmd()
	return root
}

// leaves are the commands that do something, without those that cobra brings.
func leaves(c *cobra.Command) []*cobra.Command {
	if c.Name() == "completion" || c.Name() == "help" {
		return nil
	}
	if len(c.Commands()) == 0 {
		return []*cobra.Command{c}
	}
	var out []*cobra.Command
	for _, sub := range c.Commands() {
		out = append(out, leaves(sub)...)
	}
	return out
}

// path is a command without the program's name.
func pathOf(c *cobra.Command) string {
	return c.CommandPath()[min(len(c.CommandPath()), len("iopctl ")):]
}

// Leaves are the paths of all commands that do something.
func Leaves() []string {
	var out []string
	for _, c := range leaves(tree()) {
		out = append(out, pathOf(c))
	}
	slices.Sort(out)
	return out
}

// Shape is a pointer to an empty value of what a command prints as JSON; nil = it prints none.
func Shape(path string) any { return jsonShapes()[path] }

// ExitCodes are the documented ones.
func ExitCodes() []int {
	var out []int
	for _, x := range exits() {
		out = append(out, x.code)
	}
	return out
}
