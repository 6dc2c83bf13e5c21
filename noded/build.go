package noded

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"iop/configs"
	"iop/noded/adapter"
	"iop/noded/adapter/demo"
	"iop/proto/nodepb"
)

// builder makes adapters out of their configuration and of the keys that only the node has.
type builder struct {
	keys    map[string]configs.Secret
	env     configs.Env
	dataDir string   // "" if there is none
	keeper  []string // of commands: see Keeper
	rhythm  rhythm   // of the watches

	commands []string // programs that may be started; nil: any
}

// plan gathers what an adapter is built from. models are the names that its providers serve.
func (b builder) plan(c *nodepb.AdapterConfig, models []string) stationPlan {
	p := stationPlan{config: c}
	if c.GetType() == string(configs.AdapterDemo) {
		p.models = models
	}
	name := c.GetApiKeyEnv()
	if name == "" {
		return p
	}
	if key, ok := b.look(name); ok {
		p.key = key
	} else {
		p.broken = fmt.Sprintf("the key %s is not there; give it under env: in the node file or in noded's environment, and restart noded", name)
	}
	return p
}

// build makes the adapter, or one that says why it can't be.
func (b builder) build(p stationPlan) *station {
	a, err := b.makeAdapter(p)
	if err != nil {
		a = brokenAdapter{fmt.Errorf("adapter %s: %w", p.config.GetId(), err)}
	}
	return newStation(a, p)
}

func (b builder) makeAdapter(p stationPlan) (adapter.Adapter, error) {
	if p.broken != "" {
		return nil, errors.New(p.broken)
	}
	switch t := p.config.GetType(); t {
	case string(configs.AdapterDemo):
		return makeDemo(p)
	case string(configs.AdapterCLI):
		return b.makeAgent(p.config)
	case string(configs.AdapterOllama):
		return makeOllama(p)
	default: // every other type is an OpenAI-compatible server
		o, err := adapter.NewOpenAI(adapter.OpenAIConfig{BaseURL: p.config.GetBaseUrl(), APIKey: p.key})
		if err != nil {
			return nil, err
		}
		return o, nil
	}
}

// Settings of a demo adapter in the payload, as in the edge file.
const (
	settingWords        = "words"
	settingWordInterval = "word_interval_ms"
	settingFirstToken   = "first_token_ms"
)

func makeDemo(p stationPlan) (adapter.Adapter, error) {
	numbers := map[string]int{settingWords: 40, settingWordInterval: 25, settingFirstToken: 150}
	for name, value := range p.config.GetSettings() {
		if _, known := numbers[name]; !known {
			continue // of a newer edge
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("setting %s: %q is not a number from 0", name, value)
		}
		numbers[name] = n
	}
	return demo.New(demo.Config{
		Models:       p.models,
		Words:        numbers[settingWords],
		WordInterval: time.Duration(numbers[settingWordInterval]) * time.Millisecond,
		FirstToken:   time.Duration(numbers[settingFirstToken]) * time.Millisecond,
	}), nil
}

// servedBy lists the models of the providers on an adapter, sorted, each once.
func servedBy(providers []*nodepb.ProviderConfig, id string) []string {
	var models []string
	for _, p := range providers {
		if p.GetAdapter() == id {
			models = append(models, p.GetModels()...)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}
