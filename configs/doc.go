// Package configs is the configuration: the schema of the edge file and the node file, their defaults, a strict load that
// reports every problem at once, and the cluster part as a document.
//
// The daemons call LoadEdge and LoadNode, iopctl calls them too, and edged keeps the cluster part in the machine as
// Canonical bytes, which ParseCluster reads back. It is the only package that knows YAML. It opens no listener, contacts
// nobody, and never prints a secret: those are of type Secret, and messages about them name the key only.
//
// Where next: edge.go, cluster.go and catalog.go (the schema of the edge file), node.go (the node file), decode.go (strict
// decoding), validate.go (the rules), schema.go (the JSON Schema that editors read).
package configs
