package storage

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"iop/fsm"
)

// The numbers of the command kinds in message Command.
const (
	kindOpenSession protowire.Number = iota + 1
	kindEndSession
	kindAdmit
	kindCancel
	kindRelease
	kindRegisterNode
	kindNodeReady
	kindLinkLost
	kindLinkReport
	kindSetHealth
	kindDrain
	kindApplyConfig
	kindExpire
	kindRaiseLevel
	kindDigestCheck
	kindAddJoin
	kindRedeemJoin
	kindAnnounce
	kindSubmit
	kindProgress
	kindKeep
	kindForget
	kindEvict
)

// appendCommand appends a command as field 5 of a Batch. It panics on a kind that is not in the record format, which
// only an unfinished change of this program can bring about.
//
//	0x2a  len  | tag of the kind  len  fields of the kind |
//	Batch.5    | Command: one field                       |
func appendCommand(b []byte, c fsm.Command) []byte {
	return appendNested(b, 5, func(b []byte) []byte {
		switch c := c.(type) {
		case *fsm.Admit: // the two kinds that every request has come first
			return appendNested(b, kindAdmit, func(b []byte) []byte { return appendAdmit(b, c) })
		case *fsm.Release:
			return appendNested(b, kindRelease, func(b []byte) []byte {
				b = appendUint(b, 1, uint64(c.Lease))
				b = appendUint(b, 2, uint64(c.Reason))
				return appendBool(appendUsage(appendBool(b, 3, c.Requeue), &c.Usage), 5, c.Unsent)
			})
		case *fsm.Cancel:
			return appendNested(b, kindCancel, func(b []byte) []byte { return appendText(b, 1, c.Request) })
		case *fsm.Expire:
			return appendNested(b, kindExpire, func(b []byte) []byte { return appendUint(b, 1, c.Term) })
		}
		return appendRare(b, c)
	})
}

func appendAdmit(b []byte, c *fsm.Admit) []byte {
	b = appendText(b, 1, c.Request)
	if c.Fingerprint != (fsm.Fingerprint{}) {
		b = appendText(b, 2, c.Fingerprint[:])
	}
	b = appendText(b, 3, c.Model)
	b = appendUint(b, 4, uint64(c.Class))
	b = appendUint(b, 5, uint64(c.InputTokens))
	b = appendUint(b, 6, uint64(c.Needs))
	b = appendUint(b, 7, uint64(c.MaxWait))
	b = appendText(b, 8, c.Provider)
	b = appendText(b, 9, c.Served)
	b = appendText(b, 10, c.Principal)
	b = appendText(b, 11, c.Token)
	b = appendBool(b, 12, c.Metered)
	return appendUint(b, 13, uint64(c.Place))
}

func appendUsage(b []byte, u *fsm.Usage) []byte {
	if *u == (fsm.Usage{}) {
		return b
	}
	return appendNested(b, 4, func(b []byte) []byte {
		b = appendBool(b, 1, u.Told)
		b = appendUint(b, 2, uint64(u.Prompt))
		b = appendUint(b, 3, uint64(u.Completion))
		b = appendUint(b, 4, uint64(u.Cached))
		return appendUint(b, 5, uint64(u.Reasoning))
	})
}

func appendRare(b []byte, c fsm.Command) []byte {
	switch c := c.(type) {
	case *fsm.OpenSession:
		return appendNested(b, kindOpenSession, func(b []byte) []byte {
			b = appendText(b, 1, c.Edge)
			return appendFixed(b, 2, c.Nonce)
		})
	case *fsm.EndSession:
		return appendNested(b, kindEndSession, func(b []byte) []byte {
			b = appendText(b, 1, c.Edge)
			b = appendUint(b, 2, uint64(c.Session))
			b = appendUint(b, 3, uint64(c.Reason))
			b = appendBool(b, 4, c.Alive)
			b = appendBool(b, 5, c.Apart)
			return appendUint(b, 6, uint64(c.Since))
		})
	case *fsm.Evict:
		return appendNested(b, kindEvict, func(b []byte) []byte { return appendText(b, 1, c.Request) })
	case *fsm.Drain:
		return appendNested(b, kindDrain, func(b []byte) []byte {
			b = appendText(b, 1, c.Node)
			b = appendText(b, 2, c.Provider)
			return appendBool(b, 3, c.On)
		})
	case *fsm.ApplyConfig:
		return appendNested(b, kindApplyConfig, func(b []byte) []byte { return appendApplyConfig(b, c) })
	case *fsm.AddJoin:
		return appendNested(b, kindAddJoin, func(b []byte) []byte {
			b = appendText(appendHash(b, 1, c.Token), 2, c.Node)
			return appendUint(b, 3, uint64(c.TTL))
		})
	case *fsm.RedeemJoin:
		return appendNested(b, kindRedeemJoin, func(b []byte) []byte {
			return appendHash(appendHash(b, 1, c.Token), 2, c.NodeToken)
		})
	case *fsm.Announce:
		return appendNested(b, kindAnnounce, func(b []byte) []byte { return appendText(b, 1, c.Address) })
	case *fsm.RaiseLevel:
		return appendNested(b, kindRaiseLevel, func(b []byte) []byte { return appendUint(b, 1, uint64(c.Level)) })
	case *fsm.DigestCheck:
		return appendNested(b, kindDigestCheck, func(b []byte) []byte { return appendText(appendUint(b, 1, c.Index), 2, c.Digest[:]) })
	}
	return appendResponseCommand(b, c)
}

func appendNodeCommand(b []byte, c fsm.Command) []byte {
	switch c := c.(type) {
	case *fsm.RegisterNode:
		return appendNested(b, kindRegisterNode, func(b []byte) []byte {
			b = appendText(b, 1, c.Node)
			b = appendFixed(b, 2, c.Instance)
			b = appendUint(b, 3, uint64(c.Supersede))
			return appendPacked(b, 4, c.Running)
		})
	case *fsm.NodeReady:
		return appendNested(b, kindNodeReady, func(b []byte) []byte { return appendLink(b, c.Node, c.Generation) })
	case *fsm.LinkLost:
		return appendNested(b, kindLinkLost, func(b []byte) []byte {
			return appendUint(appendLink(b, c.Node, c.Generation), 3, uint64(c.Reason))
		})
	case *fsm.LinkReport:
		return appendNested(b, kindLinkReport, func(b []byte) []byte {
			return appendPacked(appendLink(b, c.Node, c.Generation), 3, c.Running)
		})
	case *fsm.SetHealth:
		return appendNested(b, kindSetHealth, func(b []byte) []byte {
			b = appendText(appendLink(b, c.Node, c.Generation), 3, c.Provider)
			b = appendUint(b, 4, uint64(c.Health))
			return appendText(b, 5, c.Cause)
		})
	}
	if b, ok := appendNext(b, c); ok {
		return b
	}
	panic(fmt.Sprintf("storage: no record for command %T", c))
}

func appendLink(b []byte, n fsm.NodeID, g fsm.Generation) []byte {
	return appendUint(appendText(b, 1, n), 2, uint64(g))
}

func appendApplyConfig(b []byte, c *fsm.ApplyConfig) []byte {
	b = appendText(b, 1, c.Document)
	config := marshalConfig(&c.Config)
	b = protowire.AppendTag(b, 2, bytesType)
	b = protowire.AppendBytes(b, config)
	b = appendUint(b, 3, uint64(c.Expected))
	b = appendBool(b, 4, c.Force)
	b = appendText(b, 5, c.Edge)
	return appendText(b, 6, c.Offer)
}

func appendHash(b []byte, n protowire.Number, h fsm.TokenHash) []byte {
	if h == (fsm.TokenHash{}) {
		return b
	}
	return appendText(b, n, h[:])
}
