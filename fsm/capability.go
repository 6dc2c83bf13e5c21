package fsm

// Capabilities that not every backend of an OpenAI-compatible kind has: the configuration says which do
// (providers[].capabilities). The values are in the log: they never change.
const (
	NeedResponses   Needs = 1 << 4  // POST /v1/responses, trusted as it is
	NeedMessages    Needs = 1 << 5  // POST /v1/messages
	NeedRerank      Needs = 1 << 6  // POST /v1/rerank
	NeedScore       Needs = 1 << 7  // POST /v1/score
	NeedAudio       Needs = 1 << 8  // POST /v1/audio/…
	NeedImages      Needs = 1 << 9  // POST /v1/images/…
	NeedTokenize    Needs = 1 << 10 // POST /v1/tokenize, /v1/detokenize
	NeedModerations Needs = 1 << 11 // POST /v1/moderations
	NeedOther       Needs = 1 << 12 // every other POST /v1/… that names a model
)
