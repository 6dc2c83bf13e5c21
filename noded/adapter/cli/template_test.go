package cli

import (
	"slices"
	"testing"
)

func TestExpand(t *testing.T) {
	v := values{prompt: "what's {model}?", model: "m", system: "be brief", dir: "/d"}
	for name, c := range map[string]struct {
		template []string
		v        values
		want     []string
	}{
		"each is one argument":          {[]string{"-p", "{prompt}", "--in={dir}"}, v, []string{"-p", "what's {model}?", "--in=/d"}},
		"other braces stay":             {[]string{`{"a":"{model}"}`, "{x}"}, v, []string{`{"a":"m"}`, "{x}"}},
		"given":                         {[]string{"--sys", "{system}", "-"}, v, []string{"--sys", "be brief", "-"}},
		"absent with its flag":          {[]string{"-a", "--sys", "{system}", "-"}, values{}, []string{"-a", "-"}},
		"absent within an argument":     {[]string{"-a", "--sys={system}", "-"}, values{}, []string{"-a", "-"}},
		"absent without a flag":         {[]string{"ask", "{system}", "-"}, values{}, []string{"ask", "-"}},
		"absent twice":                  {[]string{"--sys", "{system}", "{system}"}, values{}, []string{}},
		"an empty prompt is one":        {[]string{"-p", "{prompt}"}, values{}, []string{"-p", ""}},
		"a client gives no options":     {[]string{"{prompt}", "{system}"}, values{prompt: "--yolo", system: "-x"}, []string{" --yolo", " -x"}},
		"an operator does":              {[]string{"-{model}", "{model}"}, values{model: "m"}, []string{"-m", "m"}},
		"within an option it is a text": {[]string{"--ask={prompt}"}, values{prompt: "--yolo"}, []string{"--ask=--yolo"}},
	} {
		if got := expand(c.template, c.v); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
