package chat

import "net/http"

// Read reads the body of a POST to path, which may have a query. The problem is a 400 that names the parameter, or a 404
// if the path is none of the endpoints.
func Read(path string, body []byte) (*Request, *Problem) {
	return nil, &Problem{Status: http.StatusNotFound, Code: "not_found", Message: "not read yet"}
}
