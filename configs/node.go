package configs

// Node is the node file. All else comes from the edge.
type Node struct {
	Node NodeSelf          `json:"node" doc:"Who this node is and whom it dials."`
	Env  map[string]Secret `json:"env" doc:"Keys of backends by the name that adapters say in api_key_env. A name not given here is looked up in the environment."`

	Commands []string `json:"commands" doc:"Programs that adapters of type cli may start here, each by its name in PATH or its absolute path. Absent: any that the edge's configuration names; []: none."`
}

// NodeSelf is who a node is and whom it dials.
type NodeSelf struct {
	ID        string   `json:"id" required:"true" doc:"As in the edge's nodes list."`
	Token     Secret   `json:"token" required:"true" doc:"The node's token; write ${NAME} and set the variable."`
	Edges     []string `json:"edges" required:"true" doc:"Node listeners of the edges, host:port. The node keeps a link to each."`
	TLS       NodeTLS  `json:"tls" doc:"How to check the edge, and who we are."`
	Plaintext bool     `json:"plaintext" doc:"Allow plain text to edges beyond loopback: the token and all prompts travel unencrypted."`
	Traces    Traces   `json:"traces" doc:"OpenTelemetry traces of what runs here. Off by default."`
	DataDir   string   `json:"data_dir" doc:"Directory for results of background requests, for the runs of commands, and for where the cluster's edges are (edges.json). Empty: nothing is kept, and commands run in the directory for temporary files."`
}

// NodeTLS is how a node speaks TLS to its edges.
type NodeTLS struct {
	Enabled    bool   `json:"enabled" doc:"Speak TLS to the edges."`
	CA         string `json:"ca" doc:"Authorities that may sign the edge's certificate, a PEM file. Empty: those of the system."`
	Cert       string `json:"cert" doc:"Client certificate chain, a PEM file. Empty: none."`
	Key        string `json:"key" doc:"Its private key, a PEM file."`
	ServerName string `json:"server_name" doc:"Name that the edge's certificate must have. Empty: the host dialled."`
}

// NewNode gives the defaults of every key of the node file.
func NewNode() *Node {
	return &Node{Node: NodeSelf{Edges: []string{}, Traces: newTraces()}, Env: map[string]Secret{}}
}
