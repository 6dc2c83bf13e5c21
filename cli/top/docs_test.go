package top

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsShowTheScreen: the screen in OPERATING.md is the one that is drawn, but for blank lines.
func TestDocsShowTheScreen(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "OPERATING.md"))
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.ReadFile(filepath.Join("testdata", "queue.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`\n{6,}`).ReplaceAllString(strings.TrimRight(string(screen), "\n"), "\n\n")
	if !strings.Contains(string(docs), "```\n"+want+"\n```") {
		t.Errorf("docs/OPERATING.md, Watching it live: the screen there is not this one any more:\n%s", want)
	}
}
