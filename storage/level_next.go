//go:build iop_next_level

package storage

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"iop/fsm"
)

// This file makes a program of a version to come: it knows one feature level more, and a kind of command of that level,
// which it tries to propose all the time.

const levelMax = fsm.LevelMax + 1

// tomorrow is a command that today's programs can't read. The machine does nothing about it.
type tomorrow struct{ fsm.DigestCheck }

const kindTomorrow = 1000

func levelOf(c fsm.Command) uint32 {
	if _, ok := c.(*tomorrow); ok {
		return levelMax
	}
	return fsm.LevelOf(c)
}

func appendNext(b []byte, c fsm.Command) ([]byte, bool) {
	if _, ok := c.(*tomorrow); !ok {
		return b, false
	}
	return appendNested(b, kindTomorrow, func(b []byte) []byte { return b }), true
}

func readNext(kind int) fsm.Command {
	if kind == kindTomorrow {
		return &tomorrow{}
	}
	return nil
}

// proposed is one of a process, which is enough for a test.
var proposed atomic.Bool

func (g *group) proposeNext() {
	if proposed.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(g.ctx, time.Second)
	defer cancel()
	_, err := g.store.Do(ctx, &tomorrow{})
	switch {
	case errors.Is(err, ErrLevel):
		g.logger.Debug("tomorrow's command has to wait", "level", g.store.replica.level.Load())
	case err == nil || errors.Is(err, ErrSessionEnded):
		proposed.Store(true)
		g.logger.Info("tomorrow's command is in the log")
	}
}
