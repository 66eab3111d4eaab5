# tenwalls. `make` alone shows the targets.

GO      ?= go
ARCH    ?= $(shell $(GO) env GOARCH)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
OUT     ?= out/qualify

# Static programs: a cgo build of runsc starts no sandbox, and the payload runs
# in an image without libraries.
export CGO_ENABLED = 0
BUILD = $(GO) build -trimpath -ldflags '-s -w'

GUEST   = fixtures/bin/guest-linux-$(ARCH)
SOURCES = $(shell find . -name '*.go' -not -path './tools/*' -not -path './out/*') go.mod go.sum

# The runsc under test is pinned in the module tools, so that no dependency of
# this module can change it. Its version goes in as gVisor's own build does it.
RUNSC_PIN = $(shell cd tools && $(GO) list -m -f '{{.Version}}' gvisor.dev/gvisor)

.PHONY: help
help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: bin/harness bin/runsc ## build harness, payload and the pinned runsc

.PHONY: guest
guest: $(GUEST) ## build the payload that harness embeds

$(GUEST): $(wildcard hostile/*.go hostile/guest/*.go hostile/guest/*.s) go.mod
	GOARCH=$(ARCH) $(BUILD) -o $@ ./hostile/guest

bin/harness: $(GUEST) $(SOURCES)
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/harness

bin/runsc: tools/go.mod tools/go.sum
	$(GO) build -C tools -trimpath -ldflags '-s -w -X gvisor.dev/gvisor/runsc/version.version=$(RUNSC_PIN)' -o ../bin/runsc gvisor.dev/gvisor/runsc

.PHONY: qualify
qualify: build ## run every attempt against the pinned runsc on this host (root)
	./bin/harness run --out $(OUT)

.PHONY: prove
prove: build ## lower every wall once, and check that each fall is noticed (root)
	./bin/harness prove --out out/prove

.PHONY: test
test: build unit privileged whole ## run all tests (root)

.PHONY: unit
unit: $(GUEST) ## unit tests; no root needed
	$(GO) test -skip '^TestConformance$$' ./...

# Needs a C compiler, which nothing else here does.
.PHONY: race
race: $(GUEST) ## unit tests under the race detector; no root needed
	CGO_ENABLED=1 $(GO) test -race -skip '^TestConformance$$' ./...

# Tests against the real kernel and a real runsc. They fail without root.
.PHONY: privileged
privileged: build ## tests against this host's kernel and the pinned runsc (root)
	$(GO) test -tags privileged -p 1 -skip '^TestConformance$$' ./...

# The suite as Ginkgo specs, over one run.
.PHONY: whole
whole: build ## the suite itself, as Ginkgo specs (root)
	$(GO) test -count 1 -run '^TestConformance$$' ./suites -args -runsc $(CURDIR)/bin/runsc

.PHONY: fuzz
fuzz: $(GUEST) ## fuzz the parsers and the judge, 20 s each
	@for t in $$($(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[n++]=$$1 } /^ok/ { for (i=0;i<n;i++) print $$2 ":" f[i]; n=0 }'); do \
		echo "$$t"; $(GO) test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime 20s "$${t%%:*}" || exit 1; done

.PHONY: bench
bench: build ## print the ratios of a watched run to bare runsc (root)
	$(GO) test -run "^$$" -bench . -benchtime 20x ./observers
	$(GO) run ./internal/bench

.PHONY: lint
lint: ## format, vet and static analysis
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags privileged ./...
	GOARCH=arm64 $(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags privileged ./...

.PHONY: golden
golden: ## write the golden files anew; read the diff
	$(GO) test ./reports -update

.PHONY: generate
generate: ## write the generated tables anew
	$(GO) generate ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin out fixtures/bin/guest-linux-*

# Emulated, so the caps of time are far wider than on hardware.
.PHONY: vm
vm: build ## the cgroup tests and some attempts on cgroup version 2 in an emulated VM (minutes)
	mkdir -p out
	$(GO) test -c -tags privileged -o out/cgroup.test ./internal/cgroup
	sed -e 's/cpu: 2s/cpu: 90s/' -e 's/wall: 10s/wall: 100s/' cmd/harness/config_default.yaml >out/slow.yaml
	internal/vm/run.sh -f out/cgroup.test -f out/slow.yaml './cgroup.test && \
		harness run --config slow.yaml --principal --attempt 4 --attempt 8 && harness run --config slow.yaml --principal --attempt 6'

.PHONY: vm-units
vm-units: build ## the systemd units under a real systemd, in an emulated Debian VM (ten minutes)
	mkdir -p out
	sed -e 's/cpu: 2s/cpu: 90s/' -e 's/wall: 10s/wall: 100s/' -e 's#^  path:.*#  path: /usr/local/bin/runsc#' cmd/harness/config_default.yaml >out/runner.yaml
	sed -e 's/run_within: 10m/run_within: 2h/' -e 's/cpu_percent: 0/cpu_percent: 80/' deploy/harness.yaml >out/harness.yaml
	internal/vm/run.sh -d -t 2400 -f out/runner.yaml=/etc/tenwalls/runner.yaml -f out/harness.yaml=/etc/tenwalls/harness.yaml \
		-f deploy/systemd/tenwalls.service=/etc/systemd/system/tenwalls.service \
		-f deploy/systemd/tenwalls-run.service=/etc/systemd/system/tenwalls-run.service \
		-f internal/vm/units.sh ./units.sh
