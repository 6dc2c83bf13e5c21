package openai

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"iop/edged/metrics"
)

// account counts the request.
func (x *exchange) account() {
	m, a := x.s.o.Metrics, &x.answer
	provider := string(x.out.Grant.Provider)
	name, known := x.name, "" // what no model is called may be anything, and is not for the log
	if x.model != nil {
		name = string(x.model.id)
		known = name
	}
	m.Route(name, provider).Ended(x.outcome())
	by := m.Model(name)
	by.Duration(time.Since(x.began), x.trace.id)
	if a.firstByte > 0 {
		by.FirstByte(a.firstByte, x.trace.id)
	}
	if u := x.Used(); x.model != nil {
		if x.catalog.CountTokens {
			by := m.Usage(metrics.UsageKey{Principal: x.who.principal, Token: x.who.token, Model: name, Provider: provider})
			switch {
			case u.Told:
				by.Add(u.Prompt, u.Completion)
			case x.outcome() == metrics.OutcomeOK:
				by.Untold()
			}
		}
		if u.Told {
			x.model.scale.learn(x.raw, u.Prompt)
		}
	}
	if x.s.o.Logger.Enabled(context.Background(), slog.LevelDebug) {
		x.log(slog.LevelDebug, "request", "admission", x.id, "route", x.route.path, "model", known, "provider", provider,
			"principal", x.who.principal, "token", x.who.token, "outcome", x.outcome().String(), "status", a.status,
			"waited", x.waited, "took", time.Since(x.began), "in", a.reader.count.in, "out", a.reader.count.out)
	}
}

func (x *exchange) outcome() metrics.Outcome {
	switch {
	case x.err != nil:
		return metrics.OutcomeCanceled
	case x.fail != nil:
		return x.fail.outcome
	case x.answer.status >= http.StatusBadRequest:
		return metrics.OutcomeBackendRefused
	}
	return metrics.OutcomeOK
}
