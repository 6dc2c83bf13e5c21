// Package packages tests what `make release` makes and what configs/docker says: deb and rpm packages in a Debian of their own
// that systemd has booted, images without an engine for them. It runs with E2E_PACKAGES=1, as root on Linux, with the tools that
// tools_linux_test.go names; nothing of it is installed on the machine that tests.
package packages
