package openai

import _ "embed" // the document of the surface

const openapiPath = "/openapi.json"

// openapiDocument describes all of this package's routes. openapi_test.go holds it against the handlers.
//
//go:embed openapi.json
var openapiDocument []byte
