package noded

import (
	"testing"
	"time"

	"iop/configs"
	"iop/noded/edgelink"
)

// TestNodesComeBackWithinTheStartupGrace: an edge that was away for long keeps its waiters for its nodes only so long.
func TestNodesComeBackWithinTheStartupGrace(t *testing.T) {
	grace := time.Duration(configs.NewCluster().ProviderPool.StartupGraceMS) * time.Millisecond
	if slack := grace - edgelink.BackoffMax; slack < time.Second {
		t.Errorf("a node pauses up to %v, the default of startup_grace_ms is %v: %v is too little to dial and register",
			edgelink.BackoffMax, grace, slack)
	}
}
