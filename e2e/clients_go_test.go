package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	param "github.com/openai/openai-go/v3/shared"
)

// goClient is OpenAI's SDK for Go in front of a gateway.
type goClient struct{ openai.Client }

// TestClientsGo has the official Go SDK run its checks against real daemons.
func TestClientsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, layout{
		providers: []provider{
			{id: "quick", capacity: 32, demo: map[string]any{"words": 14, "word_interval_ms": 2, "first_token_ms": 5}},
			{id: "slow", capacity: 32, demo: map[string]any{"words": 2000, "word_interval_ms": 20, "first_token_ms": 10}},
			{id: "busy", capacity: 1, demo: map[string]any{"words": 20, "word_interval_ms": 100, "first_token_ms": 5}},
		},
		models: map[string][]string{"quick": {"quick"}, "slow": {"slow"}, "busy": {"busy"}},
		tokens: map[string]string{"app": "key-of-app"},
		queue:  1, timeout: 1200 * time.Millisecond,
	})
	c := goClient{openai.NewClient(option.WithBaseURL("http://"+w.edge.openai+"/v1/"), option.WithAPIKey("key-of-app"), option.WithMaxRetries(0))}
	for name, check := range map[string]func(goClient, *testing.T){
		"models": goClient.models, "chat": goClient.chat, "stream": goClient.stream, "abort": goClient.abort, "tools": goClient.tools,
		"structured output": goClient.structured, "image": goClient.image, "embeddings": goClient.embeddings, "errors": goClient.errors,
		"responses": goClient.responses, "background": goClient.background, "resume": goClient.resume,
	} {
		t.Run(name, func(t *testing.T) { check(c, t) })
	}
	t.Run("retries", func(t *testing.T) { c.retries(t) })
}

func userSays(text string) []openai.ChatCompletionMessageParamUnion {
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}
}

func (c goClient) models(t *testing.T) {
	page, err := c.Models.List(t.Context())
	if err != nil || len(page.Data) != 3 {
		t.Fatalf("%v %v", page, err)
	}
	if m, err := c.Models.Get(t.Context(), "quick"); err != nil || m.ID != "quick" {
		t.Errorf("%v %v", m, err)
	}
	wantStatus(t, errOf(c.Models.Get(t.Context(), "no-such")), 404, "model_not_found")
}

func errOf[T any](_ T, err error) error { return err }

func wantStatus(t *testing.T, err error, status int, code string) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) || e.StatusCode != status || e.Code != code {
		t.Errorf("got %v, want %d %s", err, status, code)
	}
}

func (c goClient) chat(t *testing.T) {
	r, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "quick", Messages: userSays("hi"), MaxCompletionTokens: openai.Int(3)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Model != "quick" || r.Choices[0].FinishReason != "length" || r.Usage.CompletionTokens != 3 {
		t.Errorf("%s", r.RawJSON())
	}
}

func (c goClient) stream(t *testing.T) {
	s := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "quick", Messages: userSays("hi"), StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var all openai.ChatCompletionAccumulator
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Error("a chunk does not fit to those before it")
		}
	}
	if s.Err() != nil || len(all.Choices) != 1 || all.Choices[0].Message.Content == "" || all.Usage.CompletionTokens == 0 {
		t.Errorf("%v %+v", s.Err(), all)
	}
}

func (c goClient) abort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "slow", Messages: userSays("count")})
	n := 0
	for s.Next() {
		if n++; n == 5 {
			cancel()
		}
	}
	if !errors.Is(s.Err(), context.Canceled) || n < 5 {
		t.Errorf("%d chunks, %v", n, s.Err())
	}
}

var weatherSchema = map[string]any{
	"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string", "enum": []string{"Lisbon", "Oslo"}}},
	"required": []string{"city"}, "additionalProperties": false,
}

func (c goClient) tools(t *testing.T) {
	tools := []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(param.FunctionDefinitionParam{Name: "get_weather", Parameters: weatherSchema})}
	asked := userSays("weather please")
	r, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "quick", Messages: asked, Tools: tools})
	if err != nil || len(r.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("%v %v", r, err)
	}
	call := r.Choices[0].Message.ToolCalls[0]
	if !strings.Contains(call.Function.Arguments, "Lisbon") {
		t.Errorf("it calls %s", call.Function.Arguments)
	}
	r, err = c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "quick", Tools: tools, Messages: append(asked, r.Choices[0].Message.ToParam(), openai.ToolMessage("21 degrees", call.ID)),
	})
	if err != nil || r.Choices[0].Message.Content == "" {
		t.Errorf("%v %v", r, err)
	}
}

func (c goClient) structured(t *testing.T) {
	r, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "quick", Messages: userSays("where?"),
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &param.ResponseFormatJSONSchemaParam{
			JSONSchema: param.ResponseFormatJSONSchemaJSONSchemaParam{Name: "place", Schema: weatherSchema, Strict: openai.Bool(true)},
		}},
	})
	if err != nil || strings.ReplaceAll(r.Choices[0].Message.Content, " ", "") != `{"city":"Lisbon"}` {
		t.Errorf("%v %v", r, err)
	}
}

func (c goClient) image(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	parts := []openai.ChatCompletionContentPartUnionParam{openai.TextContentPart("what is it?"), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
		URL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(png),
	})}
	if _, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "quick", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}}); err != nil {
		t.Error(err)
	}
}

func (c goClient) embeddings(t *testing.T) {
	r, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "quick", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "bb"}}})
	if err != nil || len(r.Data) != 2 || len(r.Data[1].Embedding) < 2 {
		t.Errorf("%v %v", r, err)
	}
}

func (c goClient) errors(t *testing.T) {
	ask := func(model string, more ...option.RequestOption) error {
		return errOf(c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: userSays("hi")}, more...))
	}
	wantStatus(t, ask("quick", option.WithAPIKey("wrong")), 401, "invalid_api_key")
	wantStatus(t, ask("no-such"), 404, "model_not_found")
	wantStatus(t, ask("no-such", option.WithMaxRetries(3)), 404, "model_not_found")
	s := c.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "quick", Messages: userSays("demo:error")})
	n := 0
	for s.Next() {
		n++
	}
	if n == 0 || s.Err() == nil {
		t.Errorf("a broken stream ends after %d chunks with %v", n, s.Err())
	}
}

// retries: a full queue and a deadline that is too short are waited out by the SDK alone.
func (c goClient) retries(t *testing.T) {
	hold := func() (release func()) {
		ctx, cancel := context.WithCancel(t.Context())
		s := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "busy", Messages: userSays("hold")})
		if !s.Next() {
			t.Fatal(s.Err())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for s.Next() { //nolint:revive // it is read to its end
			}
		}()
		return func() { cancel(); <-done }
	}
	ask := func(more ...option.RequestOption) error {
		return errOf(c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "busy", Messages: userSays("me too")}, more...))
	}
	release := hold()
	wantStatus(t, ask(), http.StatusServiceUnavailable, "queue_timeout")
	if err := ask(option.WithMaxRetries(6)); err != nil {
		t.Errorf("after the deadline: %v", err)
	}
	release()
}

func (c goClient) responses(t *testing.T) {
	input := responses.ResponseNewParamsInputUnion{OfString: openai.String("remember me")}
	r, err := c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "quick", Input: input})
	if err != nil || r.Status != "completed" || r.OutputText() == "" {
		t.Fatalf("%v %v", r, err)
	}
	again, err := c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{})
	if err != nil || again.ID != r.ID || again.OutputText() != r.OutputText() {
		t.Errorf("%v %v", again, err)
	}
	if err := c.Responses.Delete(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	var e *openai.Error
	if _, err := c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{}); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("a deleted response: %v", err)
	}
}

func (c goClient) background(t *testing.T) {
	input := responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}
	r, err := c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "quick", Input: input, Background: openai.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the response has ended", func() bool {
		r, err = c.Responses.Get(t.Context(), r.ID, responses.ResponseGetParams{})
		return err != nil || r.Status != "queued" && r.Status != "in_progress"
	})
	if err != nil || r.Status != "completed" || r.OutputText() == "" {
		t.Errorf("%v %v", r, err)
	}
	if r, err = c.Responses.New(t.Context(), responses.ResponseNewParams{Model: "slow", Input: input, Background: openai.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	if r, err = c.Responses.Cancel(t.Context(), r.ID); err != nil || r.Status != "cancelled" {
		t.Errorf("%v %v", r, err)
	}
}

// resume follows a response again whose stream was broken off. This SDK sends a GET with a body then.
func (c goClient) resume(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{
		Model: "slow", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}, Background: openai.Bool(true), MaxOutputTokens: openai.Int(40),
	})
	var id, text string
	seen := int64(-1)
	for n := 0; n < 10 && s.Next(); n++ {
		e := s.Current()
		if e.Response.ID != "" {
			id = e.Response.ID
		}
		seen = e.SequenceNumber
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	cancel()
	_ = s.Close()
	rest := c.Responses.GetStreaming(t.Context(), id, responses.ResponseGetParams{StartingAfter: openai.Int(seen)})
	var last string
	for rest.Next() {
		e := rest.Current()
		if e.SequenceNumber != seen+1 {
			t.Fatalf("event %d follows %d", e.SequenceNumber, seen)
		}
		seen, last = e.SequenceNumber, e.Type
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	r, err := c.Responses.Get(t.Context(), id, responses.ResponseGetParams{})
	if err != nil || rest.Err() != nil || last != "response.incomplete" || r.OutputText() != text {
		t.Errorf("%v, %v, last %s: %q, want %q", err, rest.Err(), last, text, r.OutputText())
	}
}
