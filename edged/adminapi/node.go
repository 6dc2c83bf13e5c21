package adminapi

// NodeList answers GET /nodes.
type NodeList struct {
	Nodes []Node `json:"nodes"` // by id
}

// Node is a node and its links.
type Node struct {
	ID        string     `json:"id"`
	Alias     string     `json:"alias"` // for people; "" = none
	Connected bool       `json:"connected"`
	Draining  bool       `json:"draining,omitempty"`
	Links     []NodeLink `json:"links"`   // by generation
	Version   string     `json:"version"` // of its noded, as this edge was told; "" = not linked to this edge
}

// NodeLink is one connection of a node.
type NodeLink struct {
	Edge       string `json:"edge"`
	Generation uint64 `json:"generation"`
	State      string `json:"state"` // pending, ready, fenced
}
