package cli

import "strings"

// Variables of a command's arguments. Any other text in braces stays as it is.
const (
	varPrompt     = "{prompt}"      // the prompt, of FeedArgument
	varModel      = "{model}"       // the served model's name
	varSystem     = "{system}"      // the system messages; without it they are part of the prompt
	varDir        = "{dir}"         // the run's own directory
	varSchema     = "{schema}"      // the JSON schema of the answer; without it and the next it is part of the prompt
	varSchemaFile = "{schema_file}" // a file with it, in the run's directory
)

// values is what the variables stand for.
type values struct{ prompt, model, system, dir, schema, schemaFile string }

func mentions(args []string, variable string) bool {
	for _, a := range args {
		if strings.Contains(a, variable) {
			return true
		}
	}
	return false
}

// expand fills the arguments, each by itself: whatever a value holds, it stays one argument. An argument whose {system},
// {schema} or {schema_file} has no value is left out, and if it is just that variable, so is the flag before it. A text
// of a client that would begin an argument with "-" gets a space in front, so that it can't be taken for an option.
func expand(template []string, v values) []string {
	r := strings.NewReplacer(varPrompt, v.prompt, varModel, v.model, varSystem, v.system, varDir, v.dir,
		varSchema, v.schema, varSchemaFile, v.schemaFile)
	optional := map[string]string{varSystem: v.system, varSchema: v.schema, varSchemaFile: v.schemaFile}
	var args []string
	for i, t := range template {
		if absent := lacking(t, optional); absent != "" {
			if absent == t && i > 0 && strings.HasPrefix(template[i-1], "-") && len(args) > 0 && args[len(args)-1] == template[i-1] {
				args = args[:len(args)-1]
			}
			continue
		}
		a := r.Replace(t)
		if strings.HasPrefix(a, "-") && strings.HasPrefix(t, "{") && t != a {
			a = " " + a
		}
		args = append(args, a)
	}
	return args
}

// lacking returns the variable of t that has no value, or "".
func lacking(t string, optional map[string]string) string {
	for name, value := range optional {
		if value == "" && strings.Contains(t, name) {
			return name
		}
	}
	return ""
}
