package configs

// CatalogNode is a node as the cluster knows it: how it proves who it is, and what it offers.
type CatalogNode struct {
	ID              string     `json:"id" required:"true" doc:"The node's id; its node file says the same."`
	Alias           string     `json:"alias" doc:"Name for people."`
	TokenHashSHA256 string     `json:"token_hash_sha256" doc:"SHA-256 of the node's token as 64 hex digits: 'iopctl tokens hash'. A token that the node gets by joining counts instead. Empty: it can only join ('iopctl nodes token')."`
	Adapters        []Adapter  `json:"adapters" doc:"How the node reaches its backends."`
	Providers       []Provider `json:"providers" doc:"The resources that it offers."`
	Runtime         Runtime    `json:"runtime,omitzero" doc:"Legacy. Kept as metadata, gates nothing."`
}

// Adapter is how a node reaches a backend. A change of any of it is structural.
type Adapter struct {
	ID   string      `json:"id" required:"true" doc:"Name of the adapter, unique on its node."`
	Type AdapterType `json:"type" required:"true" enum:"openai_compat,ollama,cli,demo,vllm,llamacpp,mlx,lemonade,lmstudio,seulgivibe_claude,seulgivibe_openai" doc:"What it speaks. The types of OpenAI-compatible servers count as openai_compat."`

	BaseURL   string `json:"base_url,omitempty" doc:"openai_compat, ollama: the backend's address, for openai_compat up to and with /v1, for ollama without."`
	APIKeyEnv string `json:"api_key_env,omitempty" doc:"openai_compat: name of the variable, on the node, that holds the backend's key. The key itself never stands here."`

	Command []string `json:"command,omitempty" doc:"cli: program and arguments. The arguments may have the variables {prompt}, {model}, {system}, {dir}, {schema} and {schema_file}. No shell is involved."`
	CLI     *CLI     `json:"cli,omitempty" doc:"cli: how the command gets its prompt, how its output is read, and its limits."`

	Ollama *Ollama `json:"ollama,omitempty" doc:"ollama: how its models are run."`

	Demo *Demo `json:"demo,omitempty" doc:"demo: what the built-in backend does."`
}

// Demo sets the pace of the built-in demo backend.
type Demo struct {
	Words          int    `json:"words" min:"0" max:"1000000" doc:"Words of an answer. Absent: 40."`
	WordIntervalMS Millis `json:"word_interval_ms" min:"0" max:"60000" doc:"Time between words. Absent: 25."`
	FirstTokenMS   Millis `json:"first_token_ms" min:"0" max:"600000" doc:"Time before the first word. Absent: 150."`
}

// AdapterType is what an adapter speaks.
type AdapterType string

// The adapter types. Loading turns the names of OpenAI-compatible servers into AdapterOpenAI.
const (
	AdapterOpenAI AdapterType = "openai_compat"
	AdapterOllama AdapterType = "ollama"
	AdapterCLI    AdapterType = "cli"
	AdapterDemo   AdapterType = "demo"
)

// Provider is a resource: slots of one backend.
type Provider struct {
	ID    string       `json:"id" required:"true" doc:"Unique over all nodes."`
	Type  ProviderType `json:"type" required:"true" enum:"openai_compat,vllm,llamacpp,mlx,lemonade,lmstudio,ollama,cli,seulgivibe_claude,seulgivibe_openai,demo" doc:"What the backend is."`
	Label string       `json:"label" doc:"How the node and its metrics call the kind of backend. Absent: the type."`
	// Adapter names one of the node's adapters.
	Adapter string   `json:"adapter" required:"true" doc:"Id of one of the node's adapters."`
	Models  []string `json:"models" doc:"Model names that the backend serves."`
	// Capabilities are read by Capable.
	Capabilities []Capability `json:"capabilities,omitempty" doc:"Routes that the backend has beyond chat, completions and embeddings: responses (its own is trusted as it is), messages, rerank, score, audio, images, tokenize, moderations, other (every other POST /v1/... that names a model). Absent: messages for llamacpp, vllm and ollama. [chat]: none. Needs an adapter of type openai_compat or ollama."`

	Capacity            int   `json:"capacity,omitempty" min:"1" max:"1000000" doc:"Requests at the same time. Absent only for cli: unlimited."`
	LongContextCapacity *int  `json:"long_context_capacity,omitempty" min:"0" max:"1000000" doc:"Long requests at the same time, out of capacity. Absent: not counted. 0: takes none."`
	ContextWindowTokens int64 `json:"context_window_tokens,omitempty" min:"1" max:"1000000000" doc:"Longest input of one request. Absent: not stated."`
	TotalContextTokens  int64 `json:"total_context_tokens,omitempty" min:"1" max:"1000000000000" doc:"Context of the whole backend; context_window_tokens x long_context_capacity must fit."`

	Priority    int          `json:"priority" min:"-1000000" max:"1000000" doc:"Lower wins ties. Absent: 0."`
	Enabled     bool         `json:"enabled" doc:"Absent: true. false: gets no new requests."`
	HealthCheck *HealthCheck `json:"health_check,omitempty" doc:"How the node finds out whether the backend is well. Absent: not asked, only runs tell."`
}

// HealthCheck is how a node asks a backend whether it is well.
type HealthCheck struct {
	Path       string `json:"path" doc:"Path on the backend's host, from /. Absent: the one that servers of the provider's type have; for types that have none, only whether it takes a connection."`
	IntervalMS Millis `json:"interval_ms" min:"100" max:"3600000" doc:"Time between checks. Absent: 5000."`
}

// Runtime is a legacy key of a node.
type Runtime struct {
	Concurrency int `json:"concurrency,omitempty" min:"0" max:"1000000" doc:"Legacy. Gates nothing: capacity is the providers'."`
}

// ProviderType is what a backend is.
type ProviderType string

// Provider types that other rooms treat by name. All others are OpenAI-compatible servers.
const (
	ProviderOpenAI ProviderType = "openai_compat"
	ProviderOllama ProviderType = "ollama"
	ProviderCLI    ProviderType = "cli"
	ProviderDemo   ProviderType = "demo"
)
