package edgelink

// Runs is what runs on this node, over all links, by generation and run number.
type Runs struct{}

// NewRuns returns an empty registry for one life of a node.
func NewRuns() *Runs { return &Runs{} }
