package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"iop/configs"
)

func newTokens(g *globals) *cobra.Command {
	c := newGroup("tokens", "Make tokens of clients and nodes")
	c.AddCommand(newTokensNew(g), newTokensHash(g))
	return c
}

// token is the JSON of tokens new; tokens hash leaves the token out.
type token struct {
	Token string `json:"token,omitempty"`
	Hash  string `json:"token_hash_sha256"`
}

func newTokensNew(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "new",
		Short: "Make a random token and its hash",
		Long: `Make a random token and its hash. The hash goes into the edge file (token_hash_sha256), the token to the client, or into
the node's environment. It is shown only once.`,
		Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			t := newToken()
			return g.print(c, t, func(p *page) {
				p.fields([2]string{"token", t.Token}, [2]string{"token_hash_sha256", t.Hash})
			})
		},
	}
}

func newToken() token {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	text := "iop_" + base64.RawURLEncoding.EncodeToString(random[:])
	return token{Token: text, Hash: configs.HashToken(text)}
}

func newTokensHash(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "hash [TOKEN]",
		Short: "Print the hash of a token, as the edge file wants it",
		Long: `Print the SHA-256 of a token. Without an argument the token is the first line of the standard input, which, unlike an
argument, stays out of the shell's history and of other users' sight.`,
		Example: "  printf %s \"$IOP_NODE_TOKEN\" | iopctl tokens hash",
		Args:    asUsage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := tokenText(c, args)
			if err != nil {
				return err
			}
			t := token{Hash: configs.HashToken(text)}
			return g.print(c, t, func(p *page) { p.line("%s", t.Hash) })
		},
	}
}

// tokenMax bounds what is read of the standard input, in bytes.
const tokenMax = 64 << 10

func tokenText(c *cobra.Command, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		if args[0] == "" {
			return "", usage(c, errNoToken)
		}
		return args[0], nil
	}
	if isTerminal(c.InOrStdin()) {
		_, _ = fmt.Fprint(c.ErrOrStderr(), "Token: ")
	}
	data, err := io.ReadAll(io.LimitReader(c.InOrStdin(), tokenMax))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usage(c, errNoToken)
	}
	return line, nil
}

var errNoToken = errors.New("no token given")
