package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"iop/edged/adminapi"
)

// joinOptions are the flags of what makes a join token.
type joinOptions struct{ ttl time.Duration }

func (o *joinOptions) register(c *cobra.Command) {
	c.Flags().DurationVar(&o.ttl, "ttl", joinTTL, "how long the join token can be used, at most 168h")
}

// joinLines is the JSON of a join token and how it is used. The token is shown only once.
type joinLines struct {
	*adminapi.JoinOffer
	Token      string `json:"join_token"`
	ExpiresIn  string `json:"expires_in"`
	Sh         string `json:"line_sh"`         // to paste on Linux or macOS
	PowerShell string `json:"line_powershell"` // to paste on Windows
	Join       string `json:"line_join"`       // where noded is installed already
}

func newNodesToken(g *globals) *cobra.Command {
	var o joinOptions
	c := &cobra.Command{
		Use:   "token ID",
		Short: "Make a join token for a node, and print the line that makes a machine that node",
		Long: `Make a join token for a node of the configuration. It can be used once. When it is, the node's own token is replaced: the one of
before is refused the next time the node registers (its links that are up stay up until then).`,
		Args:              exactly(1),
		ValidArgsFunction: g.completing(nodeIDs),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.client(c)
			if err != nil {
				return err
			}
			defer client.Close()
			j, err := o.mint(c, client, args[0])
			if err != nil {
				return nearby(c, client, args[0], nodeIDs, err)
			}
			return g.print(c, j, func(p *page) { showJoin(p, j) })
		},
	}
	o.register(c)
	return c
}

// mint makes a token and has its hash taken: the token itself never leaves this process but in what is printed.
func (o *joinOptions) mint(c *cobra.Command, client *adminapi.Client, node string) (*joinLines, error) {
	t := newToken()
	offer, err := client.AddJoin(c.Context(), adminapi.JoinRequest{Node: node, TokenSHA256: t.Hash, TTLMS: o.ttl.Milliseconds()})
	if err != nil {
		return nil, leaderless(err)
	}
	j := &joinLines{
		JoinOffer: offer, Token: t.Token, ExpiresIn: o.ttl.String(),
		Join: fmt.Sprintf("IOP_JOIN_TOKEN=%s noded join --edge %s", t.Token, shQuote(offer.URL)),
	}
	if offer.Plaintext && strings.HasPrefix(offer.URL, "http://") {
		j.Join += " --plaintext"
	}
	if offer.ShSHA256 != "" {
		j.Sh, j.PowerShell = lineSh(offer, t.Token), linePS(offer, t.Token)
	}
	return j, nil
}

// lineSh fetches the script, checks that it is the one that the edge told over this channel, and runs it.
func lineSh(o *adminapi.JoinOffer, token string) string {
	url := shQuote(o.URL + "/bootstrap/install.sh")
	return `f=$(mktemp) && { curl -fsSL -o "$f" ` + url + ` || wget -qO "$f" ` + url + `; } && ` +
		`{ sha256sum <"$f" || shasum -a 256 <"$f"; } 2>/dev/null | grep -q ` + o.ShSHA256 + ` && ` +
		`IOP_JOIN_TOKEN=` + token + ` sh "$f" || { echo "iop: not installed" >&2; false; }`
}

// linePS does the same in PowerShell.
func linePS(o *adminapi.JoinOffer, token string) string {
	url := "'" + strings.ReplaceAll(o.URL+"/bootstrap/install.ps1", "'", "''") + "'"
	return `$f = New-TemporaryFile; Invoke-WebRequest -UseBasicParsing -Uri ` + url + ` -OutFile $f; ` +
		`if ((Get-FileHash -Algorithm SHA256 $f).Hash -ne '` + o.PSSHA256 + `') { throw 'iop: the script is not that of the edge' }; ` +
		`$env:IOP_JOIN_TOKEN = '` + token + `'; & ([ScriptBlock]::Create((Get-Content -Raw $f)))`
}

func shQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(shPlain, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shPlain are characters that mean nothing to a shell.
const shPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@%+=,"

func showJoin(p *page, j *joinLines) {
	if j.Sh == "" {
		p.line("This edge has no builds of noded: %s", j.Problem)
		p.line("On a machine that has noded, within %s:", j.ExpiresIn)
		p.line("")
		p.line("  %s", j.Join)
		return
	}
	p.line("Paste this on the machine within %s. On Linux or macOS (as root, or for yourself):", j.ExpiresIn)
	p.line("")
	p.line("  %s", j.Sh)
	p.line("")
	p.line("On Windows, in PowerShell:")
	p.line("")
	p.line("  %s", j.PowerShell)
	p.line("")
	p.line("It can be used once. Where noded is installed: %s", j.Join)
	if !j.Plaintext && strings.HasPrefix(j.URL, "http://") {
		p.line("")
		p.line("Over plain HTTP only this machine itself can join: for others put a proxy with TLS in front (edge.bootstrap.public_url), or accept it with edge.bootstrap.plaintext.")
	}
}
