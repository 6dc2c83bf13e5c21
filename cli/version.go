package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

// build is the JSON of version.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersion(g *globals, version string) *cobra.Command {
	if version == "" {
		version = "unknown"
	}
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of iopctl",
		Args:  exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			b := build{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			return g.print(c, b, func(p *page) { p.line("iopctl %s %s %s/%s", b.Version, b.Go, b.OS, b.Arch) })
		},
	}
}
