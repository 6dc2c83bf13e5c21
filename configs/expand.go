package configs

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	envRef  = regexp.MustCompile(`\$\{([^}]*)\}`)
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// own tells whether a path is in a replica's own part, where ${NAME} is replaced and secrets may stand.
func (d *decoder) own(path string) bool {
	return d.expandUnder == "" || path == d.expandUnder || strings.HasPrefix(path, d.expandUnder+".")
}

// mayShow tells whether a message may show the value at a path. A value of the own part may be a secret, or hold one; so
// may, by mistake, what stands where the cluster part speaks of secrets.
func (d *decoder) mayShow(path string) bool { return !d.own(path) && !nearSecret.MatchString(path) }

var nearSecret = regexp.MustCompile(`\.(token_hash_sha256|token_ref|api_key_env|base_url|command)\b`)

// expand gives a scalar's text with each ${NAME} replaced, whether there was one, and false after reporting a fault.
func (d *decoder) expand(n *yaml.Node, path string) (text string, expanded, ok bool) {
	text = n.Value
	if !d.own(path) {
		if strings.Contains(text, "${") {
			d.report.problem(path, "${…} is replaced in the part 'edge' only; this part is shared by the whole cluster",
				"write the value itself, or for a key the name of a variable on the node (api_key_env)")
			return "", false, false
		}
		if looksSecret(text) {
			d.report.problem(path, "this looks like a raw token or key", rawSecretCure)
			return "", false, false
		}
		return text, false, true
	}
	if !strings.Contains(text, "${") {
		return text, false, true
	}
	ok = true
	text = envRef.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		if !envName.MatchString(name) {
			d.report.problem(path, "${…} does not hold the name of a variable", "write ${NAME} with letters, digits and _")
			ok = false
			return ""
		}
		value, found := d.env(name)
		if !found {
			d.report.problem(path, fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("set it: export %s=…", name))
			ok = false
		}
		return value
	})
	if ok && strings.Contains(envRef.ReplaceAllString(n.Value, ""), "${") {
		d.report.problem(path, "${ has no closing }", "write ${NAME}")
		ok = false
	}
	d.report.expanded[path] = true
	return text, true, ok
}
