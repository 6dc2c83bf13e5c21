package adminapi

// ModelList answers GET /models.
type ModelList struct {
	Models []Model `json:"models"` // by id
}

// Model is an external model key and who can serve it.
type Model struct {
	ID        string           `json:"id"`
	Available bool             `json:"available"` // a candidate is enabled, healthy, not draining and linked
	Queued    int              `json:"queued"`
	Providers []ModelCandidate `json:"providers"` // by provider id
}

// ModelCandidate is a provider and the model's name there.
type ModelCandidate struct {
	Provider string `json:"provider"`
	Served   string `json:"served"`
}
