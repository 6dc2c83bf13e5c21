package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"iop/configs"
)

// print writes data in the format that was asked for; show writes it for people.
func (g *globals) print(c *cobra.Command, data any, show func(p *page)) error {
	text, err := g.render(c.OutOrStdout(), data, show)
	if err != nil {
		return err
	}
	if _, err := c.OutOrStdout().Write(text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (g *globals) render(w io.Writer, data any, show func(p *page)) ([]byte, error) {
	switch g.output {
	case "json":
		return jsonText(data)
	case "yaml":
		text, err := jsonText(data)
		if err != nil {
			return nil, err
		}
		return configs.YAML(text)
	}
	p := &page{wide: g.output == "wide", color: g.colored(w)}
	show(p)
	return p.text.Bytes(), nil
}

func jsonText(data any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(data); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	return harmless(b.Bytes()), nil
}

// colored tells whether w is a terminal that wants colours.
func (g *globals) colored(w io.Writer) bool {
	return !g.noColor && g.lookup("NO_COLOR") == "" && g.lookup("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
