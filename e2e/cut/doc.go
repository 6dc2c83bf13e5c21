// Package cut is a TCP proxy that breaks on command: it drops connections, holds bytes back, or swallows them while
// both ends believe that the connection stands.
//
// Tests put it between a node and its edge (or a client and the edge). It never looks into what it carries, one
// pattern apart (HoldAnswerTo). Only e2e uses it.
package cut
