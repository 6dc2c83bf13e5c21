//go:build !linux && !darwin && !windows

package service

import (
	"context"
	"fmt"
	"runtime"
)

// Install is not known of this system.
func Install(context.Context, Service) (string, error) { return "", errSystem() }

// Uninstall is not known of this system.
func Uninstall(context.Context) (string, error) { return "", errSystem() }

func errSystem() error {
	return fmt.Errorf("the services of %s are not known; have its own service manager run: noded --config FILE", runtime.GOOS)
}
