package configs

// Cluster is the part of the edge file that all replicas share: one document in the machine. It holds no secret.
type Cluster struct {
	ProviderPool               ProviderPool  `json:"provider_pool" doc:"The one queue of the cluster."`
	LongContextThresholdTokens int64         `json:"long_context_threshold_tokens" min:"1" max:"1000000000" doc:"A request with at least this many estimated input tokens is a long one."`
	Models                     []Model       `json:"models" doc:"What clients can ask for."`
	Nodes                      []CatalogNode `json:"nodes" doc:"The machines that may connect, and what they offer."`
	OpenAI                     OpenAI        `json:"openai" doc:"Who may call, and how calls are counted."`
	Responses                  Responses     `json:"responses,omitzero" doc:"Responses that are stored: those that clients ask to keep, and background ones."`
}

// ProviderPool bounds the queue.
type ProviderPool struct {
	MaxQueue         int    `json:"max_queue" min:"0" max:"1000000" doc:"Pending requests of the whole cluster. 0 or absent: 16."`
	QueueTimeoutMS   Millis `json:"queue_timeout_ms" min:"0" max:"86400000" doc:"How long a request may wait, from its first enqueue. Absent: 30000. 0: no bound."`
	StartupGraceMS   Millis `json:"startup_grace_ms" min:"0" max:"3600000" doc:"How long after the start of a replica its nodes count as about to connect."`
	ReattachWindowMS Millis `json:"reattach_window_ms" min:"0" max:"3600000" doc:"How long a waiting request keeps its place after its replica was lost."`
	Fairness         string `json:"fairness,omitempty" enum:"none,principal" doc:"none or absent: whoever has waited longest is first. principal: principals take turns, and each one's requests keep their order."`
	FenceTimeoutMS   Millis `json:"fence_timeout_ms" min:"100" max:"3600000" doc:"How long the slots of a lost link count as busy without a word from the node."`
}

// Responses bounds what is stored of responses.
type Responses struct {
	RetentionMS Millis `json:"retention_ms,omitempty" min:"0" max:"31536000000" doc:"How long a response is kept after its end; one that has not ended after as long fails. 0 or absent: 86400000, a day."`
	MaxBytes    int64  `json:"max_bytes,omitempty" min:"0" max:"68719476736" doc:"Room for all of them, on every replica; the oldest that have ended make room for new ones. 0 or absent: 268435456."`
}

// MaxQueueDefault is provider_pool.max_queue where it is 0 or absent.
const MaxQueueDefault = 16

// Model is an external model key and the providers that serve it.
type Model struct {
	ID         string            `json:"id" required:"true" doc:"The name that clients use."`
	Providers  map[string]string `json:"providers" doc:"Provider id: the model's name at that provider."`
	Generation Generation        `json:"generation" doc:"Added to requests where they say nothing; max_* also caps what they say."`
}

// Generation is a model's generation policy. A nil or empty field says nothing. max_* are defaults and caps, the others
// are defaults.
type Generation struct {
	MaxTokens         *int64   `json:"max_tokens,omitempty" min:"1" max:"100000000" doc:"Default and cap of the answer's length in tokens."`
	Temperature       *float64 `json:"temperature,omitempty" min:"0" max:"2" doc:"Default sampling temperature."`
	TopP              *float64 `json:"top_p,omitempty" min:"0" max:"1" doc:"Default nucleus sampling mass."`
	TopK              *int64   `json:"top_k,omitempty" min:"-1" max:"1000000" doc:"Default number of candidates for a token."`
	MinP              *float64 `json:"min_p,omitempty" min:"0" max:"1" doc:"Default least relative probability of a token."`
	PresencePenalty   *float64 `json:"presence_penalty,omitempty" min:"-2" max:"2" doc:"Default presence penalty."`
	FrequencyPenalty  *float64 `json:"frequency_penalty,omitempty" min:"-2" max:"2" doc:"Default frequency penalty."`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty" min:"0" max:"10" doc:"Default repetition penalty."`
	Seed              *int64   `json:"seed,omitempty" doc:"Default seed."`
	Stop              []string `json:"stop,omitempty" doc:"Default stop sequences."`
	ReasoningEffort   string   `json:"reasoning_effort,omitempty" enum:"none,minimal,low,medium,high,xhigh" doc:"Default reasoning effort."`
}

// OpenAI is who may call the public API and how it is counted.
type OpenAI struct {
	PrincipalTokens []PrincipalToken `json:"principal_tokens" doc:"Tokens that may call. Empty: no token is asked for."`
	Principals      []Principal      `json:"principals,omitempty" doc:"What principals may do; one that is not named has no limits."`
	ProviderAuth    ProviderAuth     `json:"provider_auth" doc:"Passing on a caller's own key to the backend."`
	Usage           Usage            `json:"usage" doc:"What is counted."`
}

// PrincipalToken is a token that may call. Several may share one principal.
type PrincipalToken struct {
	TokenRef        string `json:"token_ref" required:"true" doc:"Name of this token in logs and metrics; unique."`
	TokenHashSHA256 string `json:"token_hash_sha256" required:"true" doc:"SHA-256 of the token as 64 hex digits: 'iopctl tokens hash'."`
	PrincipalRef    string `json:"principal_ref" required:"true" doc:"Whom it belongs to; usage is counted under this name."`
	Alias           string `json:"alias" doc:"Name for people."`
}

// Principal is what one principal may do.
type Principal struct {
	Ref         string   `json:"ref" required:"true" doc:"The principal_ref of its tokens."`
	Models      []string `json:"models,omitempty" doc:"Models that it may use and sees, as clients write them; 'provider:ID' for a provider addressed directly. Absent: all."`
	MaxInFlight int      `json:"max_in_flight,omitempty" min:"0" max:"1000000" doc:"Slots that it may hold at a time; what is beyond waits. 0 or absent: no limit."`
	MaxQueued   *int     `json:"max_queued,omitempty" min:"0" max:"1000000" doc:"Requests of it that may wait at a time; what is beyond is refused with 429. Absent: no limit. 0: none waits."`
	Operator    bool     `json:"operator,omitempty" doc:"GET /v1/models tells it of candidates and slots, too."`
}

// ProviderAuth passes a caller's own key for the backend on.
type ProviderAuth struct {
	Enabled      bool   `json:"enabled" doc:"Pass the key on."`
	FromHeader   string `json:"from_header" doc:"Header of the caller's request that holds the key."`
	TargetHeader string `json:"target_header" doc:"Header of the backend's request that gets it."`
	Scheme       string `json:"scheme" doc:"Scheme put in front of the key; empty: none."`
	Required     bool   `json:"required" doc:"Refuse requests without it."`
}

// Usage is what is counted per principal, token and model.
type Usage struct {
	Tokens bool `json:"tokens" doc:"Count tokens in and out."`
}

// NewCluster gives the defaults of the cluster part.
func NewCluster() *Cluster {
	return &Cluster{
		ProviderPool: ProviderPool{
			MaxQueue:         MaxQueueDefault,
			QueueTimeoutMS:   30_000,
			StartupGraceMS:   5_000,
			ReattachWindowMS: 15_000,
			FenceTimeoutMS:   10_000,
		},
		LongContextThresholdTokens: 100_000,
		Models:                     []Model{},
		Nodes:                      []CatalogNode{},
		OpenAI: OpenAI{
			PrincipalTokens: []PrincipalToken{},
			ProviderAuth: ProviderAuth{
				FromHeader:   "X-IOP-Provider-Authorization",
				TargetHeader: "Authorization",
				Scheme:       "Bearer",
				Required:     true,
			},
			Usage: Usage{Tokens: true},
		},
	}
}
