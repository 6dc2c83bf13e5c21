package dashboard_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// inks are what is written, or drawn with a meaning, on which grounds; least is the contrast that WCAG 2.2 AA asks for.
var inks = []struct {
	ink     string
	grounds string
	least   float64
}{
	{"ink", "ground card raised accent-soft old new bad-soft", 4.5},
	{"dim", "ground card raised", 4.5},
	{"dim", "accent-soft", 4.5}, // a faint row that has the focus
	{"accent", "card raised", 4.5},
	{"accent-ink", "accent", 4.5},
	{"good", "card raised accent-soft", 3}, // a sign, never a word
	{"busy", "card raised accent-soft", 3},
	{"warn", "card raised accent-soft", 4.5},
	{"bad", "card raised accent-soft bad-soft", 4.5},
	{"edge", "card ground", 3}, // borders of what can be pressed
	{"accent", "line ground", 3},
}

var colour = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)

// TestContrast computes the contrast of the page's colours in both schemes.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("page/ui/colours.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "prefers-color-scheme: dark")
	if !ok {
		t.Fatal("colours.css has no dark scheme")
	}
	for name, part := range map[string]string{"light": light, "dark": dark} {
		of := map[string]float64{}
		for _, m := range colour.FindAllStringSubmatch(part, -1) {
			of[m[1]] = luminance(t, m[2])
		}
		for _, x := range inks {
			for ground := range strings.FieldsSeq(x.grounds) {
				a, there := of[x.ink]
				b, also := of[ground]
				if !there || !also {
					t.Fatalf("%s: no colour %s or %s", name, x.ink, ground)
				}
				if c := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); c < x.least {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, x.ink, ground, c, x.least)
				}
			}
		}
	}
}

// luminance is WCAG's relative luminance of a colour.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(fmt.Errorf("colour %s: %w", hex, err))
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
