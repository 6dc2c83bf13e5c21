package cli

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/configs"
	"iop/edged/adminapi"
)

// nodesAddOptions are the flags of nodes add.
type nodesAddOptions struct {
	alias  string
	file   string
	dryRun bool
	joinOptions
}

// added is the JSON of nodes add.
type added struct {
	Report *adminapi.RefreshReport `json:"refresh"`
	Entry  string                  `json:"edge_file_entry"`            // YAML of what to add under nodes in the edge file
	Join   *joinLines              `json:"join"`                       // null: nothing was added
	Unused []string                `json:"unused_providers,omitempty"` // of the node: no model leads to them
}

func newNodesAdd(g *globals) *cobra.Command {
	var o nodesAddOptions
	c := &cobra.Command{
		Use:   "add ID",
		Short: "Add a node to what runs, and print the line that makes a machine that node",
		Long: `Add a node to the running configuration, with its adapters and providers if -f has them, and make a join token for it. The line
that is printed is pasted on the new machine: it installs noded, joins and installs the service.

The edge file is not changed: add the entry that is printed to it, else the node goes with the next change of the file.

It exits with 0 if the node was added, 2 if the node is wrong, 4 if another change came first, 5 if there is no leader.`,
		Example: `  iopctl nodes add gpu-3 -f gpu-3.yaml          # an entry of nodes as in the edge file: alias, adapters, providers
  iopctl nodes add gpu-3 --dry-run -f gpu-3.yaml
  iopctl nodes add gpu-3 --ttl 24h -o json`,
		Args:              exactly(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return g.addNode(c, &o, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.alias, "alias", "", "`name` for people")
	f.StringVarP(&o.file, "file", "f", "", "`file` with the node's entry, - for standard input")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, change nothing")
	o.register(c)
	_ = c.MarkFlagFilename("file", yamlFiles()...) // the flag just made
	return c
}

func (g *globals) addNode(c *cobra.Command, o *nodesAddOptions, id string) error {
	fragment, err := candidate(c, o.file)
	if err != nil {
		return err
	}
	node, err := describedNode(fragment, o.file, id, o.alias)
	if err != nil {
		return err
	}
	entry, err := entryOf(node)
	if err != nil {
		return err
	}
	client, err := g.client(c)
	if err != nil {
		return err
	}
	defer client.Close()
	out := added{Entry: entry}
	out.Report, err = client.AddNode(c.Context(), adminapi.NodeRequest{ID: id, Alias: o.alias, DryRun: o.dryRun, Fragment: fragment})
	if err != nil {
		return leaderless(err)
	}
	if out.Report.Result == adminapi.RefreshApplied {
		if out.Join, err = o.mint(c, client, id); err != nil {
			return err
		}
		out.Unused = unused(c, client, node)
	}
	if err := g.print(c, out, func(p *page) { showAdded(p, &out, id, o.file) }); err != nil {
		return err
	}
	return refreshVerdict(out.Report)
}

// describedNode is the node that the flags and the file describe.
func describedNode(fragment []byte, file, id, alias string) (*configs.CatalogNode, error) {
	node, _, err := configs.ParseCatalogNode(fragment, cmp.Or(file, "node"), id, alias)
	if err != nil {
		return nil, &faultError{code: ExitUsage, err: err}
	}
	return node, nil
}

// unused are the providers of a node that get nothing, because no model leads to them. Those without a bound can be asked for
// themselves. It is nil if the edge does not tell.
func unused(c *cobra.Command, client *adminapi.Client, node *configs.CatalogNode) (ids []string) {
	l, err := client.Models(c.Context())
	if err != nil {
		return nil
	}
	used := map[string]bool{}
	for _, m := range l.Models {
		for _, v := range m.Providers {
			used[v.Provider] = true
		}
	}
	for _, v := range node.Providers {
		if !used[v.ID] && v.Capacity > 0 {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// entryOf is the node as it would stand in an edge file.
func entryOf(node *configs.CatalogNode) (string, error) {
	text, err := json.Marshal(node)
	if err != nil {
		return "", err
	}
	yaml, err := configs.YAML(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, line := range strings.SplitAfter(strings.TrimRight(string(yaml), "\n")+"\n", "\n") {
		switch {
		case line == "":
		case i == 0:
			b.WriteString("  - " + line)
		case line == "token_hash_sha256: \"\"\n": // it has none in the file
		default:
			b.WriteString("    " + line)
		}
	}
	return b.String(), nil
}

func showAdded(p *page, a *added, id, file string) {
	showRefresh(p, a.Report, file)
	if a.Join == nil {
		return
	}
	p.line("")
	showJoin(p, a.Join)
	p.line("")
	p.line("Add this to the edge file under nodes, or node %s goes with the next change of that file:", id)
	p.line("")
	for line := range strings.Lines(a.Entry) {
		p.line("%s", strings.TrimSuffix(line, "\n"))
	}
	if len(a.Unused) > 0 {
		p.line("")
		p.line("No model leads to %s yet: name it in the edge file under the providers of a model, then iopctl refresh.", strings.Join(a.Unused, ", "))
	}
}

// joinTTL is --ttl if none is given.
const joinTTL = time.Hour
