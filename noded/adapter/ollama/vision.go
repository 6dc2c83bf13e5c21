package ollama

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"iop/noded/adapter"
	"iop/noded/adapter/chat"
)

// shown is what /api/show tells of a model, as far as it matters here. Ollama before 0.6.4 tells no capabilities.
type shown struct {
	Capabilities []string `json:"capabilities"`
}

// blind is the problem of a request whose images the model would not see: Ollama leaves them out without a word. Nil if
// there are none, if the model sees, or if Ollama does not tell. It asks each time: a model may be pulled anew.
func (a *Adapter) blind(ctx context.Context, c *adapter.Call, q *chat.Request) *chat.Problem {
	param := firstImage(q)
	if param == "" {
		return nil
	}
	body, err := json.Marshal(map[string]string{"model": q.Model})
	if err != nil {
		return nil
	}
	var got collected
	end := a.tunnel.Do(ctx, &adapter.Call{Method: http.MethodPost, Path: "/api/show", Header: headerOf(c.Header), Body: body, Deadline: c.Deadline}, &got)
	var s shown
	if end.Code != adapter.CodeOK || got.status != http.StatusOK || json.Unmarshal(got.body.Bytes(), &s) != nil {
		return nil // the run itself will tell
	}
	if len(s.Capabilities) == 0 || slices.Contains(s.Capabilities, "vision") {
		return nil
	}
	return &chat.Problem{
		Status: http.StatusBadRequest, Code: "unsupported_value", Param: param,
		Message: fmt.Sprintf("the model %s reads no images", q.Model), Cure: "leave the image out, or take a model with vision",
	}
}

// firstImage names the first image of a request; "" if there is none.
func firstImage(q *chat.Request) string {
	for i, m := range q.Messages {
		for j, p := range m.Parts {
			if p.Kind == chat.PartImage {
				return fmt.Sprintf("messages[%d].content[%d]", i, j)
			}
		}
	}
	return ""
}
