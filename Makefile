# Development of the custom_labels receiver. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
BUILD := $(CURDIR)/build

# The generators and ocb, built from tools/ so that their versions are those of its go.mod.
TOOLS := $(BIN)/bpf2go $(BIN)/builder $(BIN)/mdatagen
LINT := $(BIN)/golangci-lint
# What benchmarks compare with.
PEER := $(BUILD)/peer/otelcol-ebpf-profiler

# Packages with tests that need no build of the collector.
UNIT = $(shell $(GO) list ./... | grep -v '/test/')

# Tests that must not skip (CUSTOM_LABELS_MUST_RUN) need root; only they ask for it. sudo may
# set a PATH of its own, without go in it.
AS_ROOT = $(if $(filter 0,$(shell id -u)),,-exec "sudo --preserve-env env 'PATH=$$PATH'")
PRIVILEGED = $(if $(CUSTOM_LABELS_MUST_RUN),$(AS_ROOT))

# A test of one name: prints its figure, fails when it is short of its goal or did not run.
FIGURE = GO="$(GO)" scripts/figure.sh

C_SOURCES = $(shell git ls-files --cached --others --exclude-standard 'internal/bpf/src/*.c' 'internal/bpf/src/*.h' 'testdata/*.c' 'testdata/*.h' 'testdata/*.cc' 'test/*.c' 'internal/unwind/testdata/*.c' | grep -v vmlinux)
SHELL_SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.sh') .ci/run

##@ Use

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## the demonstration: collector, labelled programs, live table of CPU by label (as root)
	@scripts/setup.sh run
	@scripts/run.sh

.PHONY: test
test: ## everything: unit tests, lint, generated files, the collector, end to end (as root or with sudo)
	@scripts/setup.sh test
	$(MAKE) test-fast CUSTOM_LABELS_MUST_RUN=1
	$(MAKE) fuzz-short
	$(MAKE) collector
	$(MAKE) e2e-attribution
	$(MAKE) e2e-instant
	$(MAKE) e2e-fidelity
	$(MAKE) e2e-contexts
	$(MAKE) e2e-real-writers
	$(MAKE) e2e-symbols
	$(MAKE) e2e-accounting
	$(MAKE) e2e-limits
	$(MAKE) e2e-unwind
	$(MAKE) e2e-offcpu
	$(MAKE) e2e-metrics
	$(MAKE) e2e-targets
	$(MAKE) e2e-rules
	$(MAKE) e2e-two-users
	$(MAKE) e2e-hostile
	$(MAKE) e2e-lifecycle
	$(MAKE) e2e-privileges
	$(MAKE) e2e-short-lived
	$(MAKE) e2e-churn
	$(MAKE) e2e-collector
	$(MAKE) e2e-deploy
	$(MAKE) e2e-docs
	$(MAKE) e2e-web
	$(MAKE) test-vm
	$(MAKE) tls-matrix

##@ Build

.PHONY: collector
collector: $(BIN)/builder ## the collector, as build/otelcol-customlabels
	mkdir -p $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" $(BIN)/builder --config builder-config.yaml
	ln -sf otelcol/otelcol-customlabels $(BUILD)/otelcol-customlabels

.PHONY: collector-kubernetes
collector-kubernetes: $(BIN)/builder ## the same with the names of pods, as the image has it, in build/otelcol-kubernetes
	mkdir -p $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" $(BIN)/builder --config deploy/kubernetes/builder-config.yaml

# ocb wants all modules that its module names, also those that no package comes from. What
# matters is that the build finds its own.
$(PEER): test/bench/peer/builder-config.yaml test/bench/peer/run.c $(BIN)/builder
	GOFLAGS="-mod=mod -e" $(BIN)/builder --skip-compilation --config $< || true
	cd $(@D) && GOFLAGS=-mod=mod CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $@ .
	$(CC) -O2 -Wall -Wextra -o $(@D)/run test/bench/peer/run.c

.PHONY: labelprof
labelprof: ## the companion command, as bin/labelprof
	$(GO) build -o $(BIN)/labelprof ./cmd/labelprof

.PHONY: web
web: ## the page of labelprof serve, into cmd/labelprof/web/dist (needs npm)
	scripts/web.sh

.PHONY: writers
writers: ## the demo programs that publish labels, in build/writers
	$(MAKE) -C testdata/writers OUT=../../build/writers

.PHONY: tls-corpus
tls-corpus: ## programs for every way in which a thread-local variable can be reached, in build/tls
	@scripts/toolchain.sh
	$(MAKE) -s -j$$(nproc) -C testdata/tls OUT=../../build/tls

.PHONY: tools
tools: $(TOOLS) $(LINT) ## generators, ocb and linter, in bin

$(TOOLS) &: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o $(BIN)/ tool
	touch $(TOOLS)

$(LINT): tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && $(GO) build -o $(BIN)/ tool
	touch $(LINT)

.PHONY: generate
generate: $(TOOLS) ## BPF objects and their Go twins, component metadata
	PATH="$(BIN):$$PATH" $(GO) generate ./internal/... ./receiver/...

.PHONY: cross
cross: ## compile for the other supported systems
	GOOS=linux GOARCH=amd64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) vet ./internal/... ./receiver/...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...

##@ Check

.PHONY: test-fast
test-fast: unit lint cross generate-check ## unit tests, lint, generated files: under 5 minutes

.PHONY: unit
unit: ## unit tests with the race detector
	$(GO) test -race -short $(PRIVILEGED) $(UNIT)

.PHONY: lint
lint: $(LINT) ## Go, C and shell
	$(GO) vet ./...
	$(LINT) run
	clang-format-19 --dry-run -Werror $(C_SOURCES)
	shellcheck $(SHELL_SOURCES)

.PHONY: format
format: $(LINT) ## put Go and C sources into the form that lint wants
	$(LINT) fmt
	clang-format-19 -i $(C_SOURCES)

.PHONY: generate-check
generate-check: ## regenerate and fail on a difference
	scripts/generate-check.sh
	scripts/web.sh check

.PHONY: fuzz-short
fuzz-short: ## every fuzz target for 4 seconds
	scripts/fuzz.sh short 4s

.PHONY: fuzz-long
fuzz-long: ## 10^8 executions of each parser's target, from what fuzz-short has found; hours
	scripts/fuzz.sh long 100000000

##@ Show by measurement (as root or with sudo)

.PHONY: e2e-attribution
e2e-attribution: writers ## CPU shares by label set against the truth that the writer measures
	$(FIGURE) ./test/e2e TestAttribution

.PHONY: e2e-instant
e2e-instant: writers ## the label of each sample against what was published at its instant
	$(FIGURE) ./test/e2e TestInstant

.PHONY: e2e-fidelity
e2e-fidelity: writers ## a million samples of self-checking labels, no mismatch
	$(FIGURE) ./test/e2e TestFidelity
	$(FIGURE) ./test/e2e TestGoLabels
	scripts/node-writers.sh
	$(FIGURE) ./test/e2e TestRealWriterNode

.PHONY: e2e-contexts
e2e-contexts: writers ## writer by property (resource, link, flags, attributes, update, fork, exec): samples checked, and how soon
	scripts/node-writers.sh
	$(FIGURE) ./test/e2e TestContexts

.PHONY: e2e-real-writers
e2e-real-writers: writers ## libraries from the registries that publish labels: each sample against their programs' logs
	scripts/node-writers.sh
	$(FIGURE) ./test/e2e TestRealWriterNode
	$(FIGURE) ./test/e2e TestRealWriterDDTraceGo

.PHONY: e2e-symbols
e2e-symbols: ## functions of code that Node.js and Python generate, in namespaces of their own, too
	scripts/node-writers.sh
	$(FIGURE) ./test/e2e TestGeneratedCode

.PHONY: e2e-accounting
e2e-accounting: writers ## hits = emitted + filtered + dropped, to the last sample under overload
	$(FIGURE) ./test/e2e TestAccounting

.PHONY: e2e-limits
e2e-limits: writers ## the limits of memory, BPF maps and background work are reached, counted, and harm no label
	$(FIGURE) ./test/e2e TestLimits

.PHONY: e2e-targets
e2e-targets: writers ## of two programs the one that is selected, by each property; a storm of programs too short to be judged
	$(FIGURE) ./test/e2e TestTargets
	$(FIGURE) ./test/e2e TestTargetsLoad
	$(FIGURE) ./test/e2e TestTargetsStorm

.PHONY: e2e-rules
e2e-rules: writers ## rules for labels on real programs, each match counted; a user past a budget beside one who is not
	$(FIGURE) ./test/e2e TestRules
	$(FIGURE) ./test/e2e TestBudgets

.PHONY: e2e-unwind
e2e-unwind: ## stacks of programs that tell theirs, leaf to root
	$(FIGURE) ./test/e2e TestUnwind

.PHONY: e2e-offcpu
e2e-offcpu: writers ## time off the CPU by label set against the truth that the writer measures; a storm of switches
	$(FIGURE) ./test/e2e TestOffCPU
	$(FIGURE) ./test/e2e TestOffCPUStorm

.PHONY: e2e-metrics
e2e-metrics: writers collector ## metrics against the profiles of the same sampler, to the sample, with churn and overflow; metrics alone; in the collector
	$(FIGURE) ./test/e2e TestMetrics

.PHONY: e2e-collector
e2e-collector: writers labelprof collector ## the built collector with the otlp exporter, reload and SIGTERM
	$(FIGURE) ./test/e2e TestCollector

.PHONY: e2e-web
e2e-web: writers labelprof collector ## the page of labelprof in Chromium: shares, slices, differences, hostile labels; a million samples
	scripts/web-browser.sh
	$(FIGURE) ./test/e2e TestWeb

.PHONY: e2e-hostile
e2e-hostile: writers ## programs that publish what no program should, beside a well-behaved one
	$(FIGURE) ./test/e2e TestHostile

.PHONY: e2e-two-users
e2e-two-users: writers ## a user who floods labels, keys, stacks and samples, beside one who must not notice
	$(FIGURE) ./test/e2e TestTwoUsers

.PHONY: e2e-lifecycle
e2e-lifecycle: writers ## receivers that start and stop in one process, and one without privileges
	$(FIGURE) ./test/e2e TestRestart
	$(FIGURE) ./test/e2e TestNoPrivileges

.PHONY: e2e-privileges
e2e-privileges: writers ## capability by capability: what the receiver has without it, and what it says
	$(FIGURE) ./test/e2e TestPrivileges

.PHONY: e2e-short-lived
e2e-short-lived: writers ## processes that live for 50 ms, at 97 and 997 Hz: samples, stacks, labels
	$(FIGURE) ./test/e2e TestShortLived

.PHONY: e2e-churn
e2e-churn: writers ## 500 processes a second that come and go in all ways, 20 s; CUSTOM_LABELS_CHURN=10m for longer
	$(FIGURE) ./test/e2e TestChurn

.PHONY: e2e-deploy
e2e-deploy: writers collector collector-kubernetes ## the collector as deploy/ runs it: configurations, arguments, capabilities, the image's program
	$(FIGURE) ./test/e2e TestDeploy

.PHONY: e2e-docs
e2e-docs: writers labelprof collector ## every command and configuration of README, docs, examples and deploy
	$(FIGURE) ./test/e2e TestDocsNameCounts
	$(FIGURE) ./test/e2e TestDocsLinks
	$(FIGURE) ./test/e2e TestDocs

.PHONY: tls-matrix
tls-matrix: tls-corpus ## labels through every TLS model, libc, load and architecture, here and in a virtual machine
	$(FIGURE) ./test/tlsmatrix TestCorpus
	$(FIGURE) ./test/tlsmatrix TestMatrix
	scripts/tls-matrix-vm.sh

.PHONY: unwind-rows
unwind-rows: ## unwind rows of about 3,000 objects of two architectures against readelf; fetches 5 GB once
	$(FIGURE) ./test/unwindrows TestUnwindRows

.PHONY: test-vm
test-vm: ## labels on Debian's kernels, x86-64 and aarch64, in virtual machines; one cell: CELL=arm64-6.12
	$(GO) test ./test/vm/...
	$(GO) run ./test/vm/matrix $(CELL)

.PHONY: bench-record
bench-record: writers ## BPF nanoseconds a sample, by kind of label source, and of one that targets exclude
	$(FIGURE) ./test/bench TestBenchRecord
	$(FIGURE) ./test/bench TestBenchFilter

.PHONY: bench-switch
bench-switch: writers ## BPF nanoseconds a switch between threads, by off_cpu_threshold
	$(FIGURE) ./test/bench TestBenchSwitch

.PHONY: bench-footprint
bench-footprint: writers collector ## start-up, memory, CPU, allocations and losses by sampling frequency
	$(FIGURE) ./test/bench TestBenchFootprint
	$(FIGURE) ./receiver/customlabelsreceiver TestSteadyAllocations

.PHONY: bench-scale
bench-scale: writers collector ## CPU and memory with 10 to 5,000 idle processes and 1 to 1,000 busy threads
	$(FIGURE) ./test/bench TestBenchScale

.PHONY: bench-unwind
bench-unwind: collector $(PEER) ## BPF time a sample by depth of the stack, CPU and memory, beside the OTel eBPF profiler
	$(FIGURE) ./test/bench TestBenchUnwind

.PHONY: bench-resolve
bench-resolve: ## time and bytes to read one executable, and to attach 1,000 processes of one
	$(FIGURE) ./internal/process TestBenchPlan
	$(FIGURE) ./test/bench TestBenchAttach

.PHONY: bench-short-lived
bench-short-lived: writers $(PEER) ## processes that live for 50 ms, beside the OTel eBPF profiler
	$(FIGURE) ./test/e2e TestShortLivedPeer

##@ Tidy

.PHONY: clean
clean: ## remove what was built, except the tools
	rm -rf $(BUILD) $(BIN)/labelprof
