# A machine with Go, make and a POSIX shell is enough for run, test, build and bench. `make help` lists the targets.

SHELL   := /bin/sh
TOOL    := go tool -modfile=.tools/go.mod
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.stamped=$(VERSION)
PROTOS  := $(wildcard proto/*/*.proto)
# Rooms whose tests are quick enough under the race detector to run them often.
RACE    := ./fsm/... ./storage/... ./configs/... ./edged/... ./noded/... ./cli/...

# The other systems that the three programs run on, and the rooms that are in them.
CROSS   := windows/amd64 windows/arm64 darwin/amd64 darwin/arm64
PORTED  := ./fsm/... ./storage/... ./proto/... ./configs/... ./edged/... ./noded/... ./cli/...

# What is in the binaries about the version comes from LDFLAGS, so the go command need not ask git.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

.DEFAULT_GOAL := help
.PHONY: help run build artifacts release release-check test smoke race soak soak-cluster mutants check lint vet vet-cross generated tidy vuln bench compare screenshots proto clean docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## edge, node and a demo backend in one process; prints a curl line; DEV has flags of iopctl dev, as DEV="--port 0"
	go run -ldflags "$(LDFLAGS) -X 'main.called=go run ./cli/cmd/iopctl'" ./cli/cmd/iopctl dev $(DEV)

build: ## edged, noded and iopctl into bin/
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./edged/cmd/edged ./noded/cmd/noded ./cli/cmd/iopctl

artifacts: ## noded for new machines into ARTIFACTS (default bin/artifacts), as edge.bootstrap.artifact_dir wants it
	@sh .tools/artifacts.sh '$(or $(ARTIFACTS),bin/artifacts)' '$(LDFLAGS)'

release: ## archives, deb and rpm packages, SBOMs and checksums into RELEASE (default bin/release); some minutes
	@sh .tools/release.sh '$(or $(RELEASE),bin/release)' '$(VERSION)'

release-check: ## is a release the same bytes, built twice in different places without a cache? PLATFORMS narrows it
	@sh .tools/release-check.sh '$(VERSION)'

test: ## all tests; needs nothing but Go
	go test -timeout 35m ./...

smoke: ## the smoke profile: three nodes, a CLI agent, ten slots, forty requests at once (part of make test)
	go test ./e2e -run '^TestSmoke' -count=1 -v

race: ## the tests of the rooms (not e2e) under the race detector; needs a C compiler
	go test -race -timeout 35m $(RACE)

soak: ## the simulator for SOAK (default 10m), from seed SEED (default: the time)
	go test ./e2e/sim -run '^TestSimulation$$' -sim.for $(or $(SOAK),10m) -sim.seed $(or $(SEED),$$(date +%s)0000) -v -timeout 0

soak-cluster: ## three real replicas under load and random faults for SOAK (default 10m), from seed SEED (default: the time)
	E2E_SEED=$(SEED) go test ./e2e -run '^TestClusterSoak$$' -soak.for $(or $(SOAK),10m) -count=1 -v -timeout 0

mutants: ## rules planted wrong, each of which the simulator has to find within a minute
	go test ./e2e/sim -run '^TestMutants$$' -sim.mutants all -v -timeout 1h

check: vet vet-cross lint generated tidy ## what a change must pass besides the tests; the first run builds the linters

vet: ## go vet
	go vet ./...

vet-cross: ## go vet for Windows and macOS: seconds, but some six minutes of one core the first time
	@for p in $(CROSS); do \
		echo "go vet for $$p, go build of noded"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} go vet $(PORTED) || exit 1; \
		GOOS=$${p%/*} GOARCH=$${p#*/} go build -o /dev/null ./noded/cmd/noded || exit 1; \
	done

lint: ## golangci-lint, pinned in .tools/go.mod
	$(TOOL) golangci-lint run ./...

generated: ## is the generated code that of the sources? Needs the protoc that made it, else it is skipped
	@sh .tools/protoc.sh check $(PROTOS)
	go test -run 'TestSchemaFilesAreCurrent' ./configs

docs: ## docs/CLI.md, of what the commands say of themselves (make test tells if it is not current)
	go test ./cli -run '^TestReference$$' -update

tidy: ## are go.mod and go.sum what the imports ask for?
	go mod tidy -diff

vuln: ## known vulnerabilities in what we use; asks the network
	$(TOOL) govulncheck ./...

bench: ## all benchmarks, one package at a time, into bin/bench.txt for benchstat; BENCH and COUNT narrow or repeat them
	@mkdir -p bin
	go test -p 1 -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -count $(or $(COUNT),1) -timeout 3h ./... > bin/bench.txt; \
	code=$$?; cat bin/bench.txt; \
	echo "written to bin/bench.txt; compare two with: $(TOOL) benchstat OLD NEW"; exit $$code

compare: ## iop and other gateways (haproxy, nginx, caddy on the PATH) in front of the same backend; some minutes
	E2E_PEERS=1 go test ./e2e -run '^TestPeers$$' -count=1 -v -timeout 30m

screenshots: ## docs/images from a real edge under load, in some three minutes; needs Chromium
	E2E_SCREENSHOTS='$(CURDIR)/docs/images' E2E_BROWSER=1 go test ./e2e -run '^TestScreenshots$$' -count=1 -v

proto: ## generate the Go code of proto/*/*.proto; needs protoc
	@sh .tools/protoc.sh write $(PROTOS)

clean: ## remove what the targets above made
	rm -rf bin
