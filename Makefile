# `make test` is everything that CI runs, set-up included; `make help` lists the rest.

SHELL := bash
.DEFAULT_GOAL := help

BIN := $(CURDIR)/.bin

# The tools are rebuilt when their versions or the compiler change, not when a checkout touches files.
KEY   := $(shell { go env GOVERSION; cat tools/go.mod tools/go.sum; } | cksum | cut -d' ' -f1)
TOOLS := $(BIN)/tools-$(KEY)

LINT      := $(BIN)/golangci-lint
PLATFORMS := darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 linux/arm64

N        ?= 50
SEEDS    ?= 2000
FUZZTIME ?= 5

##@ Every day

help: ## this list
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the static binary, as bin/duemq
	CGO_ENABLED=0 go build -trimpath -o bin/duemq ./cmd/duemq

quick: ## vet and short tests: Go only, under 3 minutes
	go vet ./...
	go test -short -timeout 3m ./...

test: ## everything that CI runs, with its own set-up; needs root for the power cuts
	@.ci/stages.sh

fmt: $(TOOLS) ## format all Go files
	$(LINT) fmt

##@ Stages of make test (budgets are in .ci/stages.sh)

setup: ## what the machine lacks, and the tools into .bin/
	@.ci/setup.sh
	go mod download
	@$(MAKE) --no-print-directory tools

fmt-check: $(TOOLS) ## is everything formatted?
	$(LINT) fmt --diff

lint: $(TOOLS) ## golangci-lint, product and tools
	$(LINT) config verify
	$(LINT) run ./...
	cd tools && $(LINT) run --config ../.golangci.yml ./...

archtest: ## the rules about the repository itself
	go test ./internal/archtest

unit: ## all tests at full length
	go test -timeout 6m ./...
	cd tools && go test ./...
	cd wheel/benchpeers && go vet ./...

race: ## short tests with the race detector
	go test -race -short -timeout 6m ./...

fuzz: ## every fuzz target for FUZZTIME seconds, 5 minutes in all
	@.ci/fuzz.sh $(FUZZTIME) 290

crash-kill: ## kill -9 a store under load N times
	go test ./test/crash -run '^TestKill$$' -v -timeout 0 -cycles=$(N)

crash-power: ## cut the power N times, and once without syncs as the control (root)
	go test -tags power ./test/crash -run '^TestPower$$' -v -timeout 0 -cycles=$(N)

model: ## random histories against the simple model, SEEDS of them
	go test ./internal/engine -run '^TestMachineAgainstSimple$$' -timeout 0 -seeds=$(SEEDS) $(if $(SEED),-seed=$(SEED))

exam: ## seeded bugs, each of which the harness must catch
	go test ./internal/engine -run '^TestExam$$' -count=1

cross: ## build and vet for the other platforms
	@set -e; for p in $(PLATFORMS); do echo "$$p"; export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; \
		go build ./...; go vet ./...; done

vuln: $(TOOLS) ## known vulnerabilities that we call; the database is in .bin/
	@set -o pipefail; $(BIN)/govulncheck -format json -db file://$(BIN)/vulndb ./... | go run -C tools ./vulns

deps: ## go.mod is tidy, checksums hold, licences are ones we may ship
	go mod tidy -diff
	go mod verify
	cd tools && go run ./licenses -dir ..

##@ Now and then

crash: ## N kills and N power cuts: make crash N=1000
	@$(MAKE) --no-print-directory crash-kill crash-power N=$(N)

bench: ## the table of docs/benchmarks.md, measured here (Linux; ARGS="-full" for ten million)
	go run ./internal/bench $(ARGS)

cover: ## statement coverage by function, total last
	go test -short -coverpkg=./... -coverprofile=cover.out ./...
	go tool cover -func=cover.out

dead: $(TOOLS) ## functions nothing reaches, tests counted as callers
	$(BIN)/deadcode -test ./...

tools: $(TOOLS) ## linters and checkers into .bin/, versions from tools/go.mod

clean: ## remove what make built
	rm -rf .bin bin cover.out

$(TOOLS):
	rm -rf $(BIN)
	cd tools && GOBIN=$(BIN) go install tool
	vulndb=$$(cd tools && go list -m -f '{{.Dir}}' golang.org/x/vulndb) && \
		$(BIN)/indexdb -vulns "$$vulndb/data/osv" -out $(BIN)/vulndb
	touch $@

.PHONY: help build quick test fmt setup fmt-check lint archtest unit race fuzz crash-kill crash-power model exam \
	cross vuln deps crash bench cover dead tools clean
