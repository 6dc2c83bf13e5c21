package admin

import (
	"bytes"
	"fmt"
	"sync"

	"iop/configs"
	"iop/fsm"
)

// catalog keeps what operators want to see of the configuration and the machine has no use for: names and types. They are
// read from the machine's own document, so they belong to the same revision as the numbers beside them.
type catalog struct {
	mu    sync.Mutex
	names *names
}

// names are those of one revision.
type names struct {
	revision  fsm.Revision
	aliases   map[fsm.NodeID]string
	providers map[fsm.ProviderID]configured
}

// look calls fn with the machine and gives the names of its revision.
func (a *api) look(fn func(*fsm.Machine)) (*names, error) {
	known := a.catalog.current()
	var revision fsm.Revision
	var document []byte
	a.Source.View(func(m *fsm.Machine) {
		fn(m)
		if revision = m.Revision(); revision != known.revision {
			document = bytes.Clone(m.Document())
		}
	})
	if revision == known.revision {
		return known, nil
	}
	return a.catalog.learn(revision, document)
}

func (c *catalog) current() *names {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.names == nil {
		c.names = &names{}
	}
	return c.names
}

func (c *catalog) learn(revision fsm.Revision, document []byte) (*names, error) {
	n := &names{
		revision:  revision,
		aliases:   make(map[fsm.NodeID]string),
		providers: make(map[fsm.ProviderID]configured),
	}
	if len(document) > 0 {
		cluster, err := configs.ParseCluster(document)
		if err != nil {
			return nil, fmt.Errorf("read configuration revision %d: %w", revision, err)
		}
		for _, node := range cluster.Nodes {
			n.aliases[fsm.NodeID(node.ID)] = node.Alias
			n.add(&node)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = n
	return n, nil
}
