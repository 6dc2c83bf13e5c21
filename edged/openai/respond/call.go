package respond

import (
	"encoding/json"
	"strconv"

	"iop/edged/openai/pieces"
)

// call takes a piece of a call of a function. Calls stay open until the answer ends, since some backends write several
// of them by turns.
func (r *Run) call(index int, d *pieces.Call) {
	if !r.grown(len(d.Function.Arguments)) {
		return
	}
	o := r.calls[index]
	if o == nil {
		if r.current != nil {
			r.current.close(r, Completed)
			r.current = nil
		}
		ref := r.q.tools.byName[d.Function.Name]
		kind := ref.kind
		if kind == "" {
			kind = typeCall
		}
		o = r.newOutput(kind)
		o.ref, o.name = ref, d.Function.Name
		if ref.name != "" {
			o.name = ref.name
		}
		r.calls[index] = o
	}
	if o.callID == "" {
		o.callID = d.ID
	}
	if o.callID == "" {
		o.callID = "call_" + o.id + strconv.Itoa(index) // backends without ids
	}
	if o.name == "" {
		o.name = d.Function.Name
	}
	o.arguments.WriteString(d.Function.Arguments)
	if o.kind == typeShell {
		return // its action is not told in pieces
	}
	if !o.told {
		o.tell(r)
	}
	if o.kind == typeCall && d.Function.Arguments != "" {
		r.emit("response.function_call_arguments.delta", pair{"item_id", o.id}, pair{"output_index", o.index}, pair{"delta", d.Function.Arguments})
	}
}

// closeCall ends a call.
func (o *output) closeCall(r *Run) {
	if !o.told {
		o.tell(r)
	}
	place := []pair{{"item_id", o.id}, {"output_index", o.index}}
	switch o.kind {
	case typeCall:
		r.emit("response.function_call_arguments.done", append(place, pair{"name", o.name}, pair{"arguments", o.arguments.String()})...)
	case typeCustom:
		r.emit("response.custom_tool_call_input.delta", append(place, pair{"delta", o.input()})...)
		r.emit("response.custom_tool_call_input.done", append(place, pair{"input", o.input()})...)
	}
}

// input is what a custom tool gets: what the model wrote into the one argument, or all if it did not keep to it.
func (o *output) input() string {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(o.arguments.String()), &in) == nil && len(in) == 1 {
		var s string
		if json.Unmarshal(in[customInput], &s) == nil {
			return s
		}
	}
	return o.arguments.String()
}

// action is what a local shell is to do.
func (o *output) action() json.RawMessage {
	var a struct {
		Command          []string       `json:"command"`
		WorkingDirectory *string        `json:"working_directory"`
		TimeoutMS        *int64         `json:"timeout_ms"`
		Env              map[string]any `json:"env"`
	}
	_ = json.Unmarshal([]byte(o.arguments.String()), &a) // what a model writes may be nonsense: then there is no command
	if a.Command == nil {
		a.Command = []string{}
	}
	return object(
		pair{"type", "exec"}, pair{"command", a.Command}, pair{"env", object()}, pair{"timeout_ms", a.TimeoutMS},
		pair{"user", nil}, pair{"working_directory", a.WorkingDirectory},
	)
}

func (o *output) callJSON(head []pair) json.RawMessage {
	head = append(head, pair{"status", o.status}, pair{"call_id", o.callID})
	switch o.kind {
	case typeShell:
		return object(append(head, pair{"action", o.action()})...)
	case typeCustom:
		input := ""
		if o.status != "in_progress" {
			input = o.input()
		}
		return object(append(head, pair{"name", o.name}, pair{"input", input})...)
	}
	arguments := ""
	if o.status != "in_progress" {
		arguments = o.arguments.String()
	}
	head = append(head, pair{"name", o.name})
	if o.ref.namespace != "" {
		head = append(head, pair{"namespace", o.ref.namespace})
	}
	return object(append(head, pair{"arguments", arguments})...)
}
