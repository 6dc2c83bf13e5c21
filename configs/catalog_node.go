package configs

import "fmt"

// ParseCatalogNode reads one entry of nodes by itself, as it would stand in an edge file; name stands for the file in
// messages. The id and the alias are given where the text does not say them; an empty text is a node with nothing else. The
// rules that need the whole configuration are not checked: Cluster.Validate does that once the node is in its place.
func ParseCatalogNode(data []byte, name, id, alias string) (*CatalogNode, []Warning, error) {
	n, r := &CatalogNode{}, newReport()
	if len(data) > 0 {
		if root := parseDocument(data, r); root != nil {
			newDecoder(r, nil, "edge").decode(root, n)
		}
	}
	switch {
	case n.ID == "":
		n.ID = id
	case id != "" && n.ID != id:
		r.problem("id", fmt.Sprintf("is %s, and %s was asked for", shorten(n.ID), shorten(id)), "leave it out, or give the same")
	}
	if n.Alias == "" {
		n.Alias = alias
	}
	warnings, err := r.result(name)
	if err != nil {
		return nil, warnings, err
	}
	c := Cluster{Nodes: []CatalogNode{*n}}
	c.normalise()
	return &c.Nodes[0], warnings, nil
}
