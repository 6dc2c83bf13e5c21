package configs

import (
	"encoding/json"
	"fmt"
)

// Canonical gives the cluster part as JSON that is the same for equal parts: keys in the order of the schema, map keys
// sorted, absent lists as empty ones. It is what the machine keeps.
func (c *Cluster) Canonical() []byte {
	tidy := *c
	tidy.fillLists()
	out, err := json.Marshal(&tidy)
	if err != nil {
		// Only a float that JSON cannot say would do this, and loading refuses those.
		panic(fmt.Sprintf("configs: encode the cluster part: %v", err))
	}
	return out
}

// ParseCluster reads what Canonical wrote. It skips keys that it does not know, so that a replica can read the document of
// a newer one; it checks no rules, as the document was checked before it was offered.
func ParseCluster(document []byte) (*Cluster, error) {
	c := NewCluster()
	if err := json.Unmarshal(document, c); err != nil {
		return nil, fmt.Errorf("read the cluster part: %w", err)
	}
	c.fillLists()
	return c, nil
}

// fillLists replaces nil lists and maps by empty ones, in fresh slices where it changes an element.
func (c *Cluster) fillLists() {
	c.Models = append([]Model{}, c.Models...)
	for i := range c.Models {
		if c.Models[i].Providers == nil {
			c.Models[i].Providers = map[string]string{}
		}
	}
	c.Nodes = append([]CatalogNode{}, c.Nodes...)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Adapters = append([]Adapter{}, n.Adapters...)
		n.Providers = append([]Provider{}, n.Providers...)
		for j := range n.Providers {
			if n.Providers[j].Models == nil {
				n.Providers[j].Models = []string{}
			}
		}
	}
	if c.OpenAI.PrincipalTokens == nil {
		c.OpenAI.PrincipalTokens = []PrincipalToken{}
	}
}
