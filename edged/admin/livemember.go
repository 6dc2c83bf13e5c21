package admin

import (
	"context"
	"sync"
	"time"

	"iop/edged/adminapi"
)

// membersEvery is how often the members are asked while somebody looks.
const membersEvery = 5 * time.Second

// memberNews is what the members last said, for all feeds. Asking takes as long as the slowest of them, so no tick waits
// for it: the viewer that finds the news old has it asked beside its stream, and waits for the answer when it leaves.
type memberNews struct {
	mu     sync.Mutex // guards the rest
	list   []adminapi.LiveMember
	asked  time.Time // when the last asking began
	asking bool
}

func (n *memberNews) known() []adminapi.LiveMember {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}

// due tells whether the caller is to ask.
func (n *memberNews) due(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asking || now.Sub(n.asked) < membersEvery {
		return false
	}
	n.asking, n.asked = true, now
	return true
}

func (n *memberNews) learn(list []adminapi.LiveMember, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asking = false
	if err == nil {
		n.list = list
	} else {
		n.asked = time.Time{} // the next viewer asks again
	}
}

// asker asks the members for one stream.
type asker struct {
	news    *memberNews
	cluster Cluster // nil: there is nobody to ask
	asking  sync.WaitGroup
}

// ask has the members asked, if it is time to. It does not wait.
func (k *asker) ask(ctx context.Context) {
	if k.cluster == nil || !k.news.due(time.Now()) {
		return
	}
	k.asking.Go(func() {
		c, err := k.cluster.Show(ctx)
		if err == nil {
			err = ctx.Err() // a viewer that left may have got half of it
		}
		if err != nil {
			k.news.learn(nil, err)
			return
		}
		k.news.learn(showLiveMembers(c), nil)
	})
}

func showLiveMembers(c *adminapi.Cluster) []adminapi.LiveMember {
	out := make([]adminapi.LiveMember, 0, len(c.Members))
	for i := range c.Members {
		m := &c.Members[i]
		x := adminapi.LiveMember{
			ID: m.ID, Address: m.Address, Suffrage: "learner", Leader: m.ID == c.Leader, Reachable: m.Role != "", Role: m.Role,
			Version: m.Version,
		}
		if m.Voter {
			x.Suffrage = "voter"
		}
		if m.AppliedIndex != nil && m.Lag != nil {
			x.Applied, x.Lag = *m.AppliedIndex, *m.Lag
		}
		out = append(out, x)
	}
	return out
}
