# SPDX-License-Identifier: Apache-2.0
# `make help` explains each target.

SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

GO      ?= go
TOOL    := $(GO) tool -modfile=$(CURDIR)/tools/go.mod
# The modules with Go code, and all modules.
CODE    := . controlplane graph/svg informer/memcached observe/otel lab tools
MODULES := $(CODE) lab/operators
# Runs a command in each of these directories: $(call each,directories,command). The first failure ends it.
each     = @for directory in $(1); do echo "== $$directory: $(strip $(2))"; (cd $$directory && $(call flags,$$directory) && $(2)) || exit; done
# Exports the flags with which the packages of the control plane are compiled, so that they are compiled only once.
flags    = if [ $(1) = controlplane ]; then export GOFLAGS="$$GOFLAGS $$(tr '\n' ' ' <$(CURDIR)/sandbox/compilerflags.txt)"; fi
# The public operators that `make test-all` runs and `make lint` checks: those whose tests and builds are quick.
OPERATORS := . ./certmanager ./trustmanager ./karpenter

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Use it

.PHONY: demo
demo: ## Watch a controller converge on a local Kubernetes API: the control plane if it is built, otherwise one in memory. ARGS=--real builds it; ARGS=--replicas=3 kills one of three replicas.
	@$(GO) run ./cmd/trueup demo $(ARGS)

.PHONY: up
up: ## Start that Kubernetes API and keep it until interrupted. Pass flags with ARGS="…".
	@$(GO) run ./cmd/trueup up $(ARGS)

##@ Prove it

# RUN is a regular expression for names of tests, and TESTFLAGS are flags of go test, for example TESTFLAGS=-count=1.
TESTRUN = $(GO) run -C tools ./testrun $(if $(RUN),-run '$(RUN)') $(if $(TESTFLAGS),-flags '$(TESTFLAGS)')

.PHONY: test
test: ## Run the tests of all modules, in about ten minutes, or of PKG, for example PKG=./tracker/... RUN=TestFoo.
	@$(TESTRUN) $(PKG)

.PHONY: test-all
test-all: ## Also run what proves more and takes hours: all with the race detector, the corpus, public operators. For each night.
	@$(TESTRUN) -all

.PHONY: test-part
test-part: ## Run one fifth of what test-all adds, a different one after each commit; or PART=1 to 5.
	@$(TESTRUN) -all -part $(or $(PART),commit)

.PHONY: update
update: ## Write the golden files, and the Go, the output, the figures and the screenshots that guides show.
	$(GO) test ./internal/tests/architecture ./internal/tests/generations ./testing ./testing/internal/clustertest ./testing/internal/literal ./docs -update
	$(GO) test -run '^TestReadme' ./examples/database/internal/controller -update
	$(GO) test -run '^TestInBrowser$$' ./console -update
	$(GO) test -short ./cmd/trueup/internal/migrate -update
	cd lab && $(GO) test ./benchmarks/internal/report -update
	cd lab && $(GO) test -run '^TestFigures$$' ./corpus -update

FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME, 30s by default.
	$(GO) test -run '^$$' -fuzz '^FuzzDecodeSchedule$$' -fuzztime $(FUZZTIME) ./converge/internal/inject
	$(GO) test -run '^$$' -fuzz '^FuzzSchedules$$' -fuzztime $(FUZZTIME) ./operator
	$(GO) test -run '^$$' -fuzz '^FuzzCopyInto$$' -fuzztime $(FUZZTIME) ./resource
	$(GO) test -run '^$$' -fuzz '^FuzzAgainstModel$$' -fuzztime $(FUZZTIME) ./tracker

.PHONY: start
start: ## Run all commands of docs/start.md in a module outside of this repository, and show how long each takes.
	TRUEUP_TEST_START=1 $(GO) test -run '^TestStart$$' -count=1 -timeout 20m -v ./docs

.PHONY: bench
bench: ## Run the benchmarks, with allocations, and the workloads against a hand-written controller. Pass flags with ARGS="…".
	$(GO) test -run '^$$' -bench . -benchmem ./apis/... ./console/... ./converge/... ./duck/... ./informer/... ./internal/... ./logging/... ./observe/... ./operator/... ./plan/... ./reconcilers/... ./resource/... ./stash/... ./testing/... ./tracker/...
	cd lab && $(GO) run ./benchmarks/converge $(ARGS)

.PHONY: report
report: ## Measure what converge finds of a corpus of bugs and of mutants, and what it costs. Takes up to an hour.
	cd lab/corpus && $(GO) test -run '^TestReport$$' -timeout 3h -corpus.report -corpus.out=../../docs/converge/report.json $(ARGS)

.PHONY: envtest-suites
envtest-suites: control-plane ## Run the envtest suites of controller-runtime on the control plane. ARGS=-update records the outcomes.
	cd lab && $(GO) test -run '^TestSuites$$' -timeout 60m -v ./suites -suites.all $(ARGS)

.PHONY: operators
operators: ## Run all controllers of public operators. ARGS=-update records the outcomes and writes their table.
	cd lab/operators && $(GO) test -p 1 -timeout 30m ./... $(ARGS) && $(GO) test . $(ARGS)

.PHONY: control-plane
control-plane: ## Build the control plane that tests and demo run on, unless it is there already.
	@$(GO) run ./cmd/trueup build

##@ Change it

.PHONY: generate
generate: generate-code ## Generate deep copies, CRDs, webhooks and RBAC rules of the examples.
	for example in website database; do \
		$(GO) run ./cmd/trueup rbac --package ./examples/$$example/cmd --name $$example-manager --leader-election \
			--output examples/$$example/config/rbac/role.yaml || exit 1; \
	done

.PHONY: generate-code
generate-code:
	$(TOOL) controller-gen object paths=./internal/testkit/fixture/... paths=./examples/website/api/... paths=./examples/database/api/...
	cd examples/website && $(TOOL) controller-gen \
		crd paths=./api/... output:crd:dir=config/crd/bases
	cd examples/website && $(TOOL) controller-gen \
		webhook paths=./internal/... output:webhook:dir=config/webhook
	cd examples/database && $(TOOL) controller-gen \
		crd paths=./api/... output:crd:dir=config/crd/bases
	cd examples/database && $(TOOL) controller-gen \
		webhook paths=./internal/... output:webhook:dir=config/webhook
	cd lab && $(TOOL) controller-gen object crd paths=./benchmarks/internal/api/... output:crd:dir=benchmarks/internal/api/crd

.PHONY: fmt
fmt: ## Format all code.
	$(TOOL) golangci-lint fmt

.PHONY: lint
lint: ## Run the linters over all modules, among them those of go vet.
	$(call each,$(CODE),$(TOOL) golangci-lint run --config $(CURDIR)/.golangci.yml ./...)
	$(call each,lab/operators,$(TOOL) golangci-lint run --config $(CURDIR)/.golangci.yml $(OPERATORS))

.PHONY: vet
vet: ## Run go vet over all modules.
	$(call each,$(CODE),$(GO) vet ./...)

.PHONY: api
# Without packages that are not for import.
api: ## Compare the API of all public packages with the last tag, or with BASE, for example BASE=main~10.
	@base=$${BASE:-$$(git describe --tags --abbrev=0 2>/dev/null)}; \
	if [ -z "$$base" ]; then echo "no tag to compare with: nothing is released yet. Set BASE to a revision" >&2; exit 1; fi; \
	old=$$(mktemp -d) && trap 'git worktree remove --force "$$old/base" 2>/dev/null; rm -rf "$$old"' EXIT && \
	git worktree add --quiet --detach "$$old/base" "$$base" && \
	(cd "$$old/base" && $(TOOL) apidiff -m -w ../old trueup.dev) && \
	$(TOOL) apidiff -m -w "$$old/new" trueup.dev && \
	echo "API compared with $$base:" && \
	$(TOOL) apidiff -m "$$old/old" "$$old/new" 2>/dev/null | sed '/^- \.\/\(cmd\|docs\|examples\)\//d'

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of all modules.
	$(call each,$(MODULES),$(GO) mod tidy)

##@ Check it as CI does

.PHONY: ci
ci: ## Everything that CI checks, with the time of each part.
	@for target in check-tidy check-generate lint test test-part check-vuln; do started=$$SECONDS; \
		$(MAKE) --no-print-directory $$target || exit; echo "ci: make $$target took $$((SECONDS - started)) s"; done

# VULNDB is the URL of a copy of the vulnerability database, for example file:///var/lib/vulndb.
GOVULNCHECK = $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB))

.PHONY: vuln
vuln: ## Check the code of all modules for known vulnerabilities. Needs the database, or a copy as VULNDB.
	$(call each,$(CODE),$(GOVULNCHECK) ./...)

.PHONY: check-vuln
# The check of a package without dependencies shows whether the database can be reached.
check-vuln: ## The same, but only warn if the vulnerability database cannot be reached.
	@if out=$$($(GOVULNCHECK) ./stash 2>&1) || ! grep 'fetching vulnerabilities:' <<<"$$out"; then $(MAKE) --no-print-directory vuln; \
	else echo "WARNING: NOT CHECKED for known vulnerabilities, because the database cannot be reached: run 'make vuln' elsewhere" >&2; fi

.PHONY: check-tidy
check-tidy: ## Fail when a module is not tidy.
	$(call each,$(MODULES),$(GO) mod tidy -diff)

.PHONY: check-generate
# Tests of the examples compare their roles with what their reconcilers need, without linking their programs.
check-generate: generate-code ## Fail when generated files are not up to date.
	@git diff --exit-code -- internal/testkit/fixture examples lab/benchmarks/internal/api || { echo "generated files are out of date: run 'make generate' and commit" >&2; exit 1; }
