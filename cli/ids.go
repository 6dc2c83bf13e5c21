package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/configs"
	"iop/edged/adminapi"
)

// id is something that a command can name, and a word on it for the shell to show.
type id struct{ name, word string }

// lister asks an edge which ids there are.
type lister func(context.Context, *adminapi.Client) ([]id, error)

// idsWait bounds how long a shell waits for ids, and how long an error waits for the name that was meant.
const idsWait = time.Second

// completing makes a completion of the first argument. It says nothing if no edge answers: a shell has nowhere to show it.
func (g *globals) completing(list lister) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return g.words(c, list), cobra.ShellCompDirectiveNoFileComp
	}
}

// completingFlag makes a completion of an option's value.
func (g *globals) completingFlag(list lister) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return g.words(c, list), cobra.ShellCompDirectiveNoFileComp
	}
}

// words are the ids as cobra wants them.
func (g *globals) words(c *cobra.Command, list lister) []string {
	if g.timeout == 0 || g.timeout > idsWait {
		g.timeout = idsWait
	}
	client, err := g.client(c)
	if err != nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(c.Context(), idsWait)
	defer cancel()
	ids, err := list(ctx, client)
	if err != nil {
		return nil
	}
	seen, out := map[string]bool{}, make([]string, 0, len(ids))
	for _, x := range ids {
		text := printable(x.name)
		if seen[text] || text != x.name || text == "" || unshelled(text) != text { // what can't be typed is of no use
			continue
		}
		seen[text] = true
		if x.word != "" {
			text += "\t" + unshelled(printable(x.word))
		}
		out = append(out, text)
	}
	return out
}

// unshelled takes the sense of what a shell would act on: bash expands the words that it is offered when it puts in one after the
// other (menu-complete), so a name like $(command) would be run.
func unshelled(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("$`\\\"'", r) {
			return '_'
		}
		return r
	}, text)
}

// nearby adds to an edge's answer that there is no such id the one that was probably meant. Other errors pass.
func nearby(c *cobra.Command, client *adminapi.Client, name string, list lister, err error) error {
	var refusal *adminapi.Error
	if !errors.As(err, &refusal) || refusal.Code != "not_found" {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), idsWait)
	defer cancel()
	ids, failed := list(ctx, client)
	if failed != nil {
		return err
	}
	return &faultError{code: ExitFailure, err: err, cure: meant(name, ids) + refusal.Cure}
}

// nearMin is how long a name has to be, in bytes, to look like another one: any short one does.
const nearMin = 3

// meant asks for the nearest of the names; "" if none is near.
func meant(name string, ids []id) string {
	if len(name) < nearMin {
		return ""
	}
	known := make([]string, len(ids))
	for i, x := range ids {
		known[i] = x.name
	}
	if near := configs.Nearest(name, known); near != "" && near != name {
		return fmt.Sprintf("did you mean '%s'? ", near)
	}
	return ""
}

// unknown says that there is no such id among those that the command has read itself.
func unknown(noun, name string, ids []id) error {
	return &faultError{
		code: ExitFailure, err: fmt.Errorf("there is no %s %q", noun, name),
		cure: fmt.Sprintf("%s'iopctl %ss list' lists those there are", meant(name, ids), noun),
	}
}

func nodeIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	l, err := client.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	return idsOf(l.Nodes, func(n *adminapi.Node) id { return id{n.ID, n.Alias} }), nil
}

func providerIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	l, err := client.Providers(ctx)
	if err != nil {
		return nil, err
	}
	return idsOf(l.Providers, func(p *adminapi.Provider) id { return id{p.ID, p.Status + ", on " + p.Node} }), nil
}

func modelIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	l, err := client.Models(ctx)
	if err != nil {
		return nil, err
	}
	return idsOf(l.Models, func(m *adminapi.Model) id { return id{m.ID, fmt.Sprintf("%d wait", m.Queued)} }), nil
}

func waiterIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	l, err := client.Queue(ctx, adminapi.Moment{})
	if err != nil {
		return nil, err
	}
	return idsOf(l.Waiters, func(w *adminapi.Waiter) id {
		return id{w.Request, fmt.Sprintf("waits for %s, number %d", w.Model, w.Position)}
	}), nil
}

// leaseIDs are those of leases and of the requests that hold them.
func leaseIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	l, err := client.Leases(ctx, adminapi.Moment{})
	if err != nil {
		return nil, err
	}
	var ids []id
	for _, x := range l.Leases {
		word := x.Model + " on " + x.Provider
		ids = append(ids, id{strconv.FormatUint(x.ID, 10), word}, id{x.Request, word})
	}
	return ids, nil
}

// requestIDs are those of requests in being: the waiting ones first, since it is them that one asks about.
func requestIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	ids, err := waiterIDs(ctx, client)
	if err != nil {
		return nil, err
	}
	l, err := client.Leases(ctx, adminapi.Moment{})
	if err != nil {
		return nil, err
	}
	return append(ids, idsOf(l.Leases, func(x *adminapi.Lease) id { return id{x.Request, "runs on " + x.Provider} })...), nil
}

func memberIDs(ctx context.Context, client *adminapi.Client) ([]id, error) {
	x, err := client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return idsOf(x.Members, func(m *adminapi.ClusterMember) id {
		return id{m.ID, strings.TrimSpace(roleOf(m).text + " " + m.Address)}
	}), nil
}

func idsOf[T any](rows []T, of func(*T) id) []id {
	ids := make([]id, len(rows))
	for i := range rows {
		ids[i] = of(&rows[i])
	}
	return ids
}

// completeKeys completes a list of words that are separated by commas; those that stand there already are left out.
func completeKeys(keys ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var out []string
		for _, k := range keys {
			if !strings.Contains(","+before, ","+k+",") {
				out = append(out, before+k)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
