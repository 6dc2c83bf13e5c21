package respond

import (
	"encoding/json"
	"fmt"
)

// toolbox are the tools of a request, as chat gets them and as their calls are turned back.
type toolbox struct {
	chat   []json.RawMessage  // functions
	byName map[string]toolRef // by the function's name; only of what is more than a function
}

// toolRef is what a function of chat stands for.
type toolRef struct {
	kind      string // type of the item that a call of it becomes; "" = function_call
	name      string // of a function in a namespace
	namespace string
}

// tool is a tool of a request, as far as it is read.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Format      struct{ Type, Syntax, Definition string }
	Tools       []json.RawMessage `json:"tools"`
}

// Names of what tools become that are no functions.
const (
	shellName   = "local_shell"
	customInput = "input"
)

// shellParameters is what a local shell takes: the action of a local_shell_call.
const shellParameters = `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments."},` +
	`"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"}},"required":["command"]}`

// customParameters is what a custom tool takes: its input, which is free text.
const customParameters = `{"type":"object","properties":{"` + customInput + `":{"type":"string","description":"The tool's whole input, as plain text."}},"required":["` + customInput + `"],"additionalProperties":false}`

// leftOut are tools that OpenAI runs itself and that agents list by habit. No backend here runs them.
var leftOut = map[string]bool{
	"web_search": true, "web_search_preview": true, "web_search_2025_08_26": true, "web_search_preview_2025_03_11": true,
	"image_generation": true, "tool_search": true,
}

// readTools reads the tools and the choice among them.
func (q *Request) readTools() *Problem {
	q.tools.byName = map[string]toolRef{}
	var list []json.RawMessage
	if raw, ok := q.fields["tools"]; ok {
		if p := decode("tools", raw, &list); p != nil {
			return p
		}
	}
	for i, raw := range list {
		if p := q.tools.add(fmt.Sprintf("tools[%d]", i), raw, ""); p != nil {
			return p
		}
	}
	_, p := q.choice()
	return p
}

func (b *toolbox) add(param string, raw json.RawMessage, namespace string) *Problem {
	var t tool
	if len(raw) == 0 || raw[0] != '{' {
		return wrongType(param, "an object", raw)
	}
	if p := decode(param, raw, &t); p != nil {
		return p
	}
	switch t.Type {
	case "function", "custom", "namespace":
		if t.Name == "" {
			return missing(param + ".name")
		}
	case "local_shell":
		b.byName[shellName] = toolRef{kind: typeShell}
		b.offer(shellName, "Runs a command on the user's machine and returns its output.", json.RawMessage(shellParameters), nil)
		return nil
	case "":
		return missing(param + ".type")
	default:
		if leftOut[t.Type] {
			return nil
		}
		return &Problem{Code: CodeValue, Param: param + ".type", Message: "Tools of type '" + short(t.Type) + "' are not supported here: the models run on backends that have none. Leave the tool out, or give it as a function that you run."}
	}
	switch {
	case t.Type == "namespace":
		for i, inner := range t.Tools {
			if p := b.add(fmt.Sprintf("%s.tools[%d]", param, i), inner, t.Name); p != nil {
				return p
			}
		}
	case t.Type == "custom":
		b.byName[t.Name] = toolRef{kind: typeCustom}
		b.offer(t.Name, t.described(), json.RawMessage(customParameters), nil)
	case namespace != "":
		name := inNamespace(namespace, t.Name)
		b.byName[name] = toolRef{name: t.Name, namespace: namespace}
		b.offer(name, t.Description, t.Parameters, t.Strict)
	default:
		b.offer(t.Name, t.Description, t.Parameters, t.Strict)
	}
	return nil
}

// described tells a model what a custom tool's input looks like, since no grammar holds it to that.
func (t *tool) described() string {
	if t.Format.Definition == "" {
		return t.Description
	}
	return t.Description + "\n\nThe input must follow this " + t.Format.Syntax + " grammar:\n" + t.Format.Definition
}

func inNamespace(namespace, name string) string { return namespace + "__" + name }

// offer adds a function of chat.
func (b *toolbox) offer(name, description string, parameters json.RawMessage, strict *bool) {
	f := append([]byte(`{"name":`), quote(name)...)
	if description != "" {
		f = append(append(f, `,"description":`...), quote(description)...)
	}
	if len(parameters) > 0 && string(parameters) != "null" {
		f = append(append(f, `,"parameters":`...), parameters...)
	}
	if strict != nil {
		f = append(append(f, `,"strict":`...), encode(*strict)...)
	}
	b.chat = append(b.chat, object(pair{"type", "function"}, pair{"function", json.RawMessage(append(f, '}'))}))
}

// choices are the words that tool_choice can be.
var choices = []string{"none", "auto", "required"}

// choice is tool_choice as chat has it; nil = not said.
func (q *Request) choice() (json.RawMessage, *Problem) {
	raw, ok := q.fields["tool_choice"]
	if !ok {
		return nil, nil
	}
	if raw[0] == '"' {
		switch word := text(raw); word {
		case "none", "auto", "required":
			return raw, nil
		default:
			return nil, wrongValue("tool_choice", word, choices)
		}
	}
	var c struct{ Type, Name, Namespace, Mode string }
	if p := decode("tool_choice", raw, &c); p != nil {
		return nil, p
	}
	switch c.Type {
	case "function", "custom":
		if c.Name == "" {
			return nil, missing("tool_choice.name")
		}
		if c.Namespace != "" {
			c.Name = inNamespace(c.Namespace, c.Name)
		}
	case "local_shell":
		c.Name = shellName
	case "allowed_tools": // which of them is left to the model
		if c.Mode == "required" {
			return quote("required"), nil
		}
		return quote("auto"), nil
	default:
		return nil, &Problem{Code: CodeValue, Param: "tool_choice.type", Message: "A tool of type '" + short(c.Type) + "' can't be chosen here. Supported values are: 'function', 'custom', 'local_shell' and 'allowed_tools'."}
	}
	return object(pair{"type", "function"}, pair{"function", object(pair{"name", c.Name})}), nil
}
