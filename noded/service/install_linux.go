package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// unitDir is where an administrator's units are.
const unitDir = "/etc/systemd/system"

// Install writes the unit and starts it, now and at every boot. It returns what it did.
func Install(ctx context.Context, s Service) (string, error) {
	text, err := s.Text(Systemd)
	if err != nil {
		return "", err
	}
	path := filepath.Join(unitDir, UnitName)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("write the unit: %w", err)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", UnitName}} {
		if err := call(ctx, "systemctl", args...); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s is installed and started; its log: journalctl -u %s", path, UnitName), nil
}

// Uninstall stops the service and removes the unit. The node file and the state directory stay.
func Uninstall(ctx context.Context) (string, error) {
	path := filepath.Join(unitDir, UnitName)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the service is not installed: %w", err)
	}
	if err := call(ctx, "systemctl", "disable", "--now", UnitName); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil {
		return "", fmt.Errorf("remove the unit: %w", err)
	}
	return path + " is stopped and removed", call(ctx, "systemctl", "daemon-reload")
}
