package configs

// Schema gives the JSON Schema of the edge file.
func Schema() []byte { return nil }
