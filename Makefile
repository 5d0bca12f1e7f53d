# Development of the custom_labels receiver. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
BUILD := $(CURDIR)/build

# The generators and ocb, built from tools/ so that their versions are those of its go.mod.
TOOLS := $(BIN)/bpf2go $(BIN)/builder $(BIN)/mdatagen $(BIN)/stringer
LINT := $(BIN)/golangci-lint
ACTIONLINT := $(BIN)/actionlint
RELEASE := $(BIN)/release $(BIN)/nfpm
RELEASE_IMAGE := $(BIN)/release-image
# Debian 12's is too old to take OTLP.
PROMETHEUS := $(BIN)/prometheus
# What benchmarks compare with.
PEER := $(BUILD)/peer/otelcol-ebpf-profiler

# Packages with tests that need no build of the collector.
UNIT = $(shell $(GO) list ./... | grep -vE "/test/(e2e|bench|tlsmatrix|unwindrows)$$")

# Tests that must not skip (CUSTOM_LABELS_MUST_RUN) need root; only they ask for it. sudo may
# set a PATH of its own, without go in it.
AS_ROOT = $(if $(filter 0,$(shell id -u)),,-exec "sudo --preserve-env env 'PATH=$$PATH'")
PRIVILEGED = $(if $(CUSTOM_LABELS_MUST_RUN),$(AS_ROOT))

# Tests of given names: prints their figures, fails when one is short of its goal or did
# not run.
FIGURE = GO="$(GO)" scripts/figure.sh
PARTS = MAKE="$(MAKE)" scripts/parts.sh

C_SOURCES = $(shell git ls-files --cached --others --exclude-standard 'internal/bpf/src/*.c' 'internal/bpf/src/*.h' 'testdata/*.c' 'testdata/*.h' 'testdata/*.cc' 'test/*.c' 'examples/*.c' 'examples/*.h' 'examples/*.cc' 'internal/unwind/testdata/*.c' | grep -v vmlinux)
SHELL_SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.sh') .ci/run

SUITES := fuzz mutants soak tls-matrix truth unwind-rows vm

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '  %-16s %s\n' e2e-NAME 'one promise shown end to end (as root or with sudo): $(E2E)' \
		bench-NAME 'one measurement: $(BENCH)' \
		others 'what takes long, or runs rarely (test/README.md): $(SUITES)' | fold -s -w 100 | sed 's/^\([^ ]\)/                   \1/'
	@echo "CUSTOM_LABELS_FULL=1 takes full numbers of samples, processes and rounds; test/README.md has what protects what."

.PHONY: run
run: ## the demonstration: collector, labelled programs, live table of CPU by label (as root)
	@scripts/setup.sh run
	@scripts/run.sh

.PHONY: test
test: export CUSTOM_LABELS_MUST_RUN := 1
test: ## what to run before every commit: lint, unit tests, every promise in a quick form, two virtual machines
	@scripts/setup.sh test
	@$(PARTS) generated lint+node-writers+web-browser unit cross collector+labelprof e2e,unmeasured+~vm-quick

# e2e-hostile is alone: its processes keep tests waiting that run beside it and look at all.
.PHONY: test-all
test-all: export CUSTOM_LABELS_MUST_RUN := 1
test-all: export CUSTOM_LABELS_FULL := 1
test-all: export MINUTES ?= 3
test-all: ## everything in full, up to two hours: fuzzing, all kernels, every TLS model, mutants; benchmarks in a quick form
	@scripts/setup.sh test
	@$(PARTS) generate-check lint+node-writers+web-browser unit cross collector+labelprof \
		e2e-hostile \
		$(subst $(space),$(comma),$(addprefix e2e-,$(filter-out hostile,$(E2E))) e2e-systemd)+~mutants,vm,tls-matrix,fuzz soak,bench

.PHONY: collector
collector: $(BIN)/builder | $(BUILD) ## the collector, as build/otelcol-customlabels
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" $(BIN)/builder --config builder-config.yaml
	ln -f $(BUILD)/otelcol/otelcol-customlabels $(BUILD)/otelcol-customlabels

# ocb makes one folder, not what it is in.
$(BUILD):
	mkdir -p $@

# The collector with the names of pods, as the image has it, in build/otelcol-kubernetes.
.PHONY: collector-kubernetes
collector-kubernetes: $(BIN)/builder | $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" $(BIN)/builder --config deploy/kubernetes/builder-config.yaml

# The collector of gateways, as build/gateway/otelcol-gateway.
.PHONY: gateway
gateway: $(BIN)/builder | $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" CGO_ENABLED=0 $(BIN)/builder --ldflags="-s -w" --config deploy/fleet/builder-config.yaml

# What tests of fleets run besides, in build/fleet: a Kafka broker, and many agents in one. A
# module of its own, for what they import.
.PHONY: fleet-programs
fleet-programs:
	mkdir -p $(BUILD)/fleet
	cd test/fleet && CGO_ENABLED=0 $(GO) build -o $(BUILD)/fleet/ ./...

# ocb wants all modules that its module names, also those that no package comes from. What
# matters is that the build finds its own.
$(PEER): test/bench/peer/builder-config.yaml test/bench/peer/run.c $(BIN)/builder | $(BUILD)
	GOFLAGS="-mod=mod -e" $(BIN)/builder --skip-compilation --config $< || true
	cd $(@D) && GOFLAGS=-mod=mod CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $@ .
	$(CC) -O2 -Wall -Wextra -o $(@D)/run test/bench/peer/run.c

# Ours with what the peer's collector has besides, so that both are measured alike.
.PHONY: peer peer-ours
peer: $(PEER)
peer-ours: $(BIN)/builder | $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" CGO_ENABLED=0 $(BIN)/builder --ldflags="-s -w" --config test/bench/peer/ours-builder-config.yaml

.PHONY: labelprof
labelprof: ## the companion command, as bin/labelprof
	CGO_ENABLED=0 $(GO) build -o $(BIN)/labelprof ./cmd/labelprof

.PHONY: release
release: export GOTOOLCHAIN = local
release: $(BIN)/builder $(RELEASE) $(RELEASE_IMAGE) ## all files of a release, in build/release: VERSION=0.1.0
	@scripts/release.sh "$(VERSION)"

# The page of labelprof serve, into cmd/labelprof/web/dist.
.PHONY: web
web:
	scripts/web.sh
	scripts/generate-check.sh sum >tools/generated.sum

# The picture of README.md, from the real page (as root).
.PHONY: web-picture
web-picture: writers labelprof collector web-browser
	@scripts/web-picture.sh

# The demo programs that publish labels, in build/writers.
.PHONY: writers
writers:
	$(MAKE) -C testdata/writers OUT=../../build/writers

# Programs for every way in which a thread-local variable can be reached, in build/tls.
.PHONY: tls-corpus
tls-corpus:
	@scripts/toolchain.sh
	$(MAKE) -s -j$$(nproc) -C testdata/tls OUT=../../build/tls

.PHONY: tools
tools: $(TOOLS) $(LINT) $(ACTIONLINT)

$(TOOLS) &: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o $(BIN)/ tool
	touch $(TOOLS)

$(LINT) $(ACTIONLINT) &: tools/lint/go.mod tools/lint/go.sum
	cd tools/lint && $(GO) build -o $(BIN)/ tool
	touch $(LINT) $(ACTIONLINT)

$(RELEASE) &: $(addprefix tools/release/,go.mod go.sum main.go licenses.go)
	cd tools/release && $(GO) build -o $(BIN)/ tool .
	touch $(RELEASE)

$(RELEASE_IMAGE): $(addprefix tools/release/image/,go.mod go.sum main.go image.go layer.go)
	cd tools/release/image && $(GO) build -o $@ .

# Without service discovery in clouds. It takes minutes.
$(PROMETHEUS): tools/prometheus/go.mod tools/prometheus/go.sum
	cd tools/prometheus && $(GO) build -tags remove_all_sd -ldflags='-s -w' -o $(BIN)/ tool
	touch $@

.PHONY: generate
generate: $(TOOLS) ## BPF objects and their Go twins, component metadata
	PATH="$(BIN):$$PATH" $(GO) generate ./internal/... ./receiver/...
	scripts/generate-check.sh sum >tools/generated.sum

# Compile for the other supported systems.
.PHONY: cross
cross:
	for arch in $(filter-out $(shell $(GO) env GOARCH),amd64 arm64); do GOOS=linux GOARCH=$$arch $(GO) vet ./...; done
	GOOS=darwin GOARCH=arm64 $(GO) build ./...


.PHONY: unit
unit: ## unit tests, with the race detector where something runs beside something else
	GO="$(GO)" scripts/unit.sh $(PRIVILEGED) $(UNIT)

.PHONY: lint
lint: $(LINT) $(ACTIONLINT) ## Go (vet is one of its linters), C, shell, workflows
	$(LINT) run --allow-parallel-runners
	$(ACTIONLINT)
	clang-format-19 --dry-run -Werror $(C_SOURCES)
	shellcheck $(SHELL_SOURCES)

.PHONY: format
format: $(LINT) ## put Go and C sources into the form that lint wants
	$(LINT) fmt
	clang-format-19 -i $(C_SOURCES)

.PHONY: generate-check
generate-check:
	scripts/generate-check.sh

# The same, if something that it looks at has changed.
.PHONY: generated
generated:
	scripts/generate-check.sh changed

# Every fuzz target, 3,000 executions.
.PHONY: fuzz
fuzz:
	scripts/fuzz.sh short 3000x

# 10^8 executions of each parser's target, from what fuzz has found; hours.
.PHONY: fuzz-long
fuzz-long:
	scripts/fuzz.sh long 100000000

# What shows each promise: tests of ./test/e2e.
E2E_TESTS_attribution := TestAttribution
E2E_TESTS_instant := TestInstant
E2E_TESTS_fidelity := TestFidelity TestTruthNotices TestClockOffsets TestGoLabels TestRealWriterNode
E2E_TESTS_contexts := TestContexts TestLatePublication
E2E_TESTS_real-writers := TestRealWriterNode TestRealWriterDDTraceGo
E2E_TESTS_symbols := TestGeneratedCode TestReload
E2E_TESTS_accounting := TestAccounting
E2E_TESTS_limits := TestLimits
E2E_TESTS_targets := TestTargets TestTargetsLoad TestTargetsStorm TestExcluded
E2E_TESTS_rules := TestRules TestBudgets
E2E_TESTS_unwind := TestUnwind TestUnwindPattern TestUnwindReturnProbes TestShare
E2E_TESTS_runtimes := TestRuntimesPython TestRuntimesPythonLabels TestRuntimesPythonDeep TestRuntimesPythonStarts TestRuntimesHotSpot TestRuntimesV8 TestRuntimesV8Copies TestRuntimesV8Labels TestRuntimesV8Hostile TestRuntimesUnknown TestRuntimesOff
E2E_TESTS_offcpu := TestOffCPU TestOffCPUStorm
E2E_TESTS_metrics := TestMetrics
E2E_TESTS_collector := TestCollector
E2E_TESTS_backends := TestBackends TestBackendsNotice
E2E_TESTS_fleet := TestFleet TestFleetBackend
E2E_TESTS_prometheus := TestPrometheus
E2E_TESTS_web := TestWeb
E2E_TESTS_publish := TestPublish
E2E_TESTS_hostile := TestHostile TestHostileCode TestHostileNames TestHostileHanging TestHostilePoll TestHostileLooks TestHostileRequests TestReplacedProgram TestSharedRows TestHostileRuntimes
E2E_TESTS_two-users := TestTwoUsers
E2E_TESTS_lifecycle := TestRestart TestNoPrivileges
E2E_TESTS_privileges := TestPrivileges
E2E_TESTS_short-lived := TestShortLived
E2E_TESTS_churn := TestChurn
E2E_TESTS_deploy := TestDeploy
E2E_TESTS_quiet := TestQuiet
E2E_TESTS_release := TestRelease TestReleaseOfOtherFiles
E2E_TESTS_docs := TestPrometheusRules TestWorkflowsBuildAsImages TestMemoryOfDeployments TestDocsNameCounts TestDocsLinks TestFleetWaits TestDocs TestReleasePages TestReleaseLicenses TestListed
E2E := $(patsubst E2E_TESTS_%,%,$(filter E2E_TESTS_%,$(.VARIABLES)))

# JVMs and CPythons that this system's packages lack.
JVMS := $(BUILD)/jvms
PYTHON_BUILDS := $(BUILD)/pythons
comma := ,
space := $(subst ,, )
.PHONY: jvms pythons
jvms:
	@scripts/jvms.sh $(JVMS)
pythons:
	@scripts/pythons.sh $(PYTHON_BUILDS)
e2e-runtimes: jvms pythons
e2e-runtimes: export PYTHONS ?= $(if $(filter amd64,$(shell $(GO) env GOARCH)),$(PYTHON_BUILDS)/python3.14$(comma)$(PYTHON_BUILDS)/python3.13t$(comma)$(PYTHON_BUILDS)/python3.13m)
e2e-runtimes: export JAVAS ?= $(if $(filter amd64,$(shell $(GO) env GOARCH)),$(JVMS)/java21$(comma)$(JVMS)/java25)

.PHONY: node-writers web-browser
node-writers:
	@scripts/node-writers.sh
web-browser:
	@scripts/web-browser.sh

# What some of them run.
e2e-fidelity e2e-contexts e2e-real-writers e2e-symbols e2e-runtimes e2e-publish: node-writers
e2e-metrics e2e-collector e2e-backends e2e-fleet e2e-prometheus e2e-web e2e-deploy e2e-docs: collector
e2e-prometheus: $(PROMETHEUS)
e2e-collector e2e-backends e2e-web e2e-docs e2e-publish: labelprof
e2e-web: web-browser
e2e-deploy: collector-kubernetes labelprof
e2e-release: $(BIN)/builder $(RELEASE) $(RELEASE_IMAGE)
e2e-fleet: gateway fleet-programs

e2e-%: export CUSTOM_LABELS_FULL ?= 1
e2e-%: writers FORCE
	@$(FIGURE) ./test/e2e $(or $(E2E_TESTS_$*),$(error no promise $*: $(E2E)))

# What of a hostile program no program can show by itself: elements of maps that change hands,
# Xen's segment, files and memory that never answer. Tests of the packages.
.PHONY: e2e-hostile
e2e-hostile: export CUSTOM_LABELS_FULL ?= 1
e2e-hostile: writers node-writers
	@$(FIGURE) ./test/e2e $(E2E_TESTS_hostile)
	@$(FIGURE) ./internal/bpf TestTwoTablesOfOneFile TestFileRowsReplaced TestListTeachesNobody TestElementsOfOthers TestReplacedElements $(if $(filter amd64,$(shell $(GO) env GOARCH)),TestCodeSegment)
	@$(FIGURE) ./internal/labelsource TestSchemaGate TestSchemaDecides
	@$(FIGURE) ./internal/process TestHangingQuota TestQuarantine
	@$(FIGURE) ./internal/symbol TestCacheHangs TestPerfMapsHang TestDebugFileOfContainer TestDebugDataHangs TestNameWithoutEnd TestNameOfCopies TestNameOfManyTrials TestNamingBounded
	@$(FIGURE) ./internal/pipeline TestFileSource
	@$(FIGURE) ./internal/labels TestPromote TestRuleThatLooksLikeARegularExpression
	@$(FIGURE) ./internal/targets TestSelectorValidate
	@$(FIGURE) ./cmd/labelprof TestHostileFiles
	@$(FIGURE) ./cmd/labelprof/internal/serve TestHostileRequests TestSilentConnections TestPatience TestOwnersOnly

# Each of SAMPLES samples against what its thread had published at its instant: no wrong label, no stale one.
.PHONY: truth
truth: writers
	@TIMEOUT=0 CUSTOM_LABELS_FULL=1 CUSTOM_LABELS_SAMPLES=$(or $(SAMPLES),10000000) $(FIGURE) ./test/e2e TestFidelity

# MINUTES of churn, containers, libraries and reloads (120): nothing that the collector holds grows.
.PHONY: soak
soak: $(BIN)/builder writers | $(BUILD)
	GOFLAGS="$$($(GO) env GOFLAGS) -mod=mod -buildvcs=false" $(BIN)/builder --config test/e2e/soak/builder-config.yaml
	@TIMEOUT=0 CUSTOM_LABELS_SOAK_MINUTES=$(or $(MINUTES),120) $(FIGURE) ./test/e2e TestSoak

# The unit of deploy/systemd as it is, under the systemd of a virtual machine. Not part of E2E,
# for what it fetches and the minutes that an emulated machine takes. ARCH is this machine's, or the
# other one.
.PHONY: e2e-systemd
e2e-systemd: SYSTEMD_ARCH = $(or $(ARCH),$(shell $(GO) env GOARCH))
e2e-systemd: collector ## the systemd unit in its whole sandbox, with a reload by a bad file
	$(MAKE) -s -C test/vm ARCH=$(SYSTEMD_ARCH) systemd
	test/vm/systemd.sh $(SYSTEMD_ARCH) TestSystemd

# Single mutations of the product, each noticed by its tests; some: MUTANTS='-package labels'.
.PHONY: mutants
mutants: $(TOOLS) writers node-writers
	CUSTOM_LABELS_MUST_RUN=1 CUSTOM_LABELS_FULL= $(GO) run $(AS_ROOT) ./test/mutants $(MUTANTS)

# All of them in a quick form, in two processes at the same time: those that measure nothing
# use what the others leave idle. `make test` has built before what they run. (No e2e-NAME:
# those are full by default.)
UNMEASURED := web docs deploy lifecycle privileges hostile rules metrics backends collector symbols
# What only `make test-all` runs: it takes minutes.
ONLY_IN_FULL := fleet prometheus release quiet publish
e2e_tests = $(sort $(foreach name,$1,$(E2E_TESTS_$(name))))
.PHONY: e2e unmeasured
e2e: writers
	@$(FIGURE) ./test/e2e $(call e2e_tests,$(filter-out $(UNMEASURED) $(ONLY_IN_FULL),$(E2E)))
unmeasured: writers
	@$(FIGURE) ./test/e2e $(call e2e_tests,$(UNMEASURED))

# What measures each cost.
BENCH_TESTS_record := TestBenchRecord TestBenchFilter
BENCH_TESTS_switch := TestBenchSwitch
BENCH_TESTS_footprint := TestBenchFootprint
BENCH_TESTS_scale := TestBenchScale
BENCH_TESTS_unwind := TestBenchUnwind TestGap
BENCH_TESTS_runtimes := TestBenchRuntimes
BENCH_TESTS_churn := TestBenchChurn TestRoots
BENCH_TESTS_idle := TestBenchIdle
BENCH_TESTS_startup := TestBenchStartup
BENCH_TESTS_gateway := TestBenchGateway
BENCH := $(patsubst BENCH_TESTS_%,%,$(filter BENCH_TESTS_%,$(.VARIABLES))) resolve short-lived cold-start

bench-footprint bench-scale bench-gateway: collector
bench-gateway: gateway fleet-programs
bench-unwind bench-runtimes bench-churn bench-idle bench-startup: peer peer-ours

bench-%: export CUSTOM_LABELS_FULL ?= 1
bench-%: writers FORCE
	@$(FIGURE) ./test/bench $(or $(BENCH_TESTS_$*),$(error no measurement $*: $(BENCH)))

# What full measurements have come to, from build/bench into docs/benchmarks.md.
.PHONY: figures
figures:
	$(GO) run ./test/bench/figures $(BUILD)/bench docs/benchmarks.md

bench-resolve: export CUSTOM_LABELS_FULL ?= 1
bench-resolve:
	$(FIGURE) ./internal/executable TestBenchPlan
	$(FIGURE) ./test/bench TestBenchAttach

bench-short-lived: export CUSTOM_LABELS_FULL ?= 1
bench-short-lived: writers peer
	$(FIGURE) ./test/e2e TestShortLivedPeer

bench-cold-start: export CUSTOM_LABELS_FULL ?= 1
bench-cold-start:
	@$(FIGURE) ./test/e2e TestBenchColdStart

# All of them in a quick form, which decides nothing: so that they do not rot.
.PHONY: bench
bench: writers collector gateway fleet-programs peer peer-ours
	@CUSTOM_LABELS_FULL= $(FIGURE) ./test/bench $(foreach name,$(BENCH),$(BENCH_TESTS_$(name)))
	@CUSTOM_LABELS_FULL= $(FIGURE) ./test/e2e TestBenchColdStart

.PHONY: FORCE
FORCE:

# Labels through every TLS model, libc, load and architecture, here and in a virtual machine.
.PHONY: tls-matrix
tls-matrix: tls-corpus
	$(FIGURE) ./test/tlsmatrix TestCorpus TestMatrix
	scripts/tls-matrix-vm.sh

# Unwind rows of about 3,000 objects of two architectures against readelf; fetches 5 GB once.
.PHONY: unwind-rows
unwind-rows:
	$(FIGURE) ./test/unwindrows TestUnwindRows

# Labels on other kernels and the other architecture, in virtual machines; one cell: CELL=arm64-6.12.
.PHONY: vm
vm:
	$(GO) test ./test/vm/...
	$(GO) run ./test/vm/matrix $(CELL)

# Label states and programs loaded on the other architecture, on the oldest kernel, whose verifier takes least, and on the
# one that gives the newer programs the least stack.
.PHONY: vm-quick
vm-quick:
	$(GO) test ./test/vm/...
	$(GO) run ./test/vm/matrix -quick arm64-6.12 amd64-5.10 amd64-6.1


# Removes what was built, except the tools.
.PHONY: clean
clean:
	rm -rf $(BUILD) $(BIN)/labelprof
