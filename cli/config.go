package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"iop/configs"
)

func newConfig(g *globals) *cobra.Command {
	c := newGroup("config", "Check configuration files, and show what is in effect")
	c.AddCommand(newConfigValidate(g), newConfigShow(g), newConfigDiff(g), newConfigHistory(g), newConfigSchema())
	return c
}

// validateOptions are the flags of config validate.
type validateOptions struct {
	kind string
}

// verdict is what validate found out about one file.
type verdict struct {
	File     string            `json:"file"`
	Kind     string            `json:"kind"` // edge, node
	Valid    bool              `json:"valid"`
	Problems []configs.Problem `json:"problems"`
	Warnings []configs.Warning `json:"warnings"`
}

// verdicts is the JSON of config validate.
type verdicts struct {
	Files []verdict `json:"files"`
}

func newConfigValidate(g *globals) *cobra.Command {
	var o validateOptions
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check edge and node files; all problems are shown at once",
		Long: `Check edge and node files without starting anything. All problems of a file are shown at once, each with its place and a
cure; the exit code is 2 if there is one. A file with a top-level key 'node' is a node file, any other an edge file.`,
		Args:              asUsage(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE:              func(c *cobra.Command, args []string) error { return g.validate(c, o, args) },
	}
	c.Flags().StringVar(&o.kind, "kind", "auto", "`kind` of the files: auto, edge or node")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"auto", "edge", "node"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// completeYAML has a shell offer configuration files.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return yamlFiles(), cobra.ShellCompDirectiveFilterFileExt
}

func (g *globals) validate(c *cobra.Command, o validateOptions, files []string) error {
	all := verdicts{Files: make([]verdict, 0, len(files))}
	valid := true
	for _, file := range files {
		kind := o.kind
		switch kind {
		case "auto":
			kind = kindOf(file)
		case "edge", "node":
		default:
			return usage(c, fmt.Errorf("unknown kind %q: it is auto, edge or node", kind))
		}
		v, err := g.judge(file, kind)
		if err != nil {
			return err
		}
		valid = valid && v.Valid
		all.Files = append(all.Files, v)
	}
	if err := g.print(c, all, func(p *page) { showVerdicts(p, all) }); err != nil {
		return err
	}
	if !valid {
		return &faultError{code: ExitUsage, err: errInvalid}
	}
	return nil
}

var errInvalid = errors.New("the configuration is not valid")

func (g *globals) judge(file, kind string) (verdict, error) {
	v := verdict{File: file, Kind: kind, Problems: []configs.Problem{}, Warnings: []configs.Warning{}}
	var warnings []configs.Warning
	var err error
	if kind == "node" {
		_, warnings, err = configs.LoadNode(file, g.env)
	} else {
		_, warnings, err = configs.LoadEdge(file, g.env)
	}
	v.Warnings = append(v.Warnings, warnings...)
	var problems *configs.Problems
	switch {
	case errors.As(err, &problems):
		v.Problems = append(v.Problems, problems.List...)
	case err != nil:
		return v, fmt.Errorf("check %s: %w", file, err)
	default:
		v.Valid = true
	}
	return v, nil
}

// kindOf looks for the top-level key that only a node file has. What can't be read is left to the check.
func kindOf(file string) string {
	data, err := os.ReadFile(file)
	if err != nil || !hasTopKey(data, "node") || hasTopKey(data, "edge") {
		return "edge"
	}
	return "node"
}

func hasTopKey(data []byte, key string) bool {
	return regexp.MustCompile(`(?m)^["']?` + key + `["']?\s*:`).Match(data)
}

func showVerdicts(p *page, all verdicts) {
	for _, v := range all.Files {
		for _, w := range v.Warnings {
			p.line("%s: warning: %s", place(v.File, w.Line), w.String())
		}
		for _, x := range v.Problems {
			at := x.Path
			if at != "" {
				at += ": "
			}
			p.line("%s: %s%s", place(v.File, x.Line), at, x.Cause)
			if x.Cure != "" {
				p.line("  cure: %s", x.Cure)
			}
		}
		switch len(v.Problems) {
		case 0:
			p.line("%s: ok (%s file)", v.File, v.Kind)
		case 1:
			p.line("%s: 1 problem (%s file)", v.File, v.Kind)
		default:
			p.line("%s: %d problems (%s file)", v.File, len(v.Problems), v.Kind)
		}
	}
}

func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func newConfigSchema() *cobra.Command {
	kind := "edge"
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the edge or node file, for editors",
		Long: `Print the JSON Schema of the edge or node file. An editor with a YAML language server completes and checks a file whose
first line is

  # yaml-language-server: $schema=edge.schema.json`,
		Example: `  iopctl config schema > edge.schema.json
  iopctl config schema --kind node > node.schema.json`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			schema := configs.Schema
			switch kind {
			case "edge":
			case "node":
				schema = configs.NodeSchema
			default:
				return usage(c, fmt.Errorf("unknown kind %q: it is edge or node", kind))
			}
			if _, err := c.OutOrStdout().Write(schema()); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&kind, "kind", kind, "`kind` of the file: edge or node")
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"edge", "node"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
