# The two commands a newcomer needs: make demo, make test. Go and make are
# enough; the race detector also wants a C compiler and is left out, loudly,
# where there is none.

BIN  := bin/suffrage
CC   ?= cc
RACE := $(shell command -v $(firstword $(CC)) >/dev/null 2>&1 && echo -race)

.PHONY: demo test fleet sim mutants compat systemd prometheus page-test mesh tailscale-test kube-test k3s-test build lint bench bench-swap fuzz clean

build:
	go build -o $(BIN) ./cmd/suffrage

# A fleet of five hosts on this machine: one voter is made slow, and the report
# changes from "all fit" to "would swap". Ctrl-C ends everything.
demo: build
	$(BIN) demo

test:
	@test -n "$(RACE)" || echo "NOTE: no C compiler ($(CC)), so the race detector is off" >&2
	go test $(RACE) -timeout 10m ./...

# The tests with real fleets that take minutes: trouble of every kind, other
# numbers of voters, and a swap whose controller is killed at every step. FLEETS of
# them stand at a time; one takes six tenths of a core, and waits most of the time.
SKIP ?= ^$$
FLEETS ?= 2
fleet:
	SUFFRAGE_FLEET=1 go test -count=1 -timeout 40m -parallel $(FLEETS) -v -run 'TestFleet|TestSwap|TestDocs' -skip '$(SKIP)' ./cmd/suffrage

# The model cluster: SEEDS runs in which things go wrong, and every pair of
# faults of a swap and of each way back. A seed that fails prints how to run it
# again.
SEEDS ?= 10000
sim:
	SUFFRAGE_SEEDS=$(SEEDS) go test -count=1 -timeout 60m -v -run 'TestSimulation|TestEvery' ./membership/memtest

# The product broken by hand in one place each: the model has to find every one.
mutants:
	SUFFRAGE_MUTANTS=1 go test -count=1 -timeout 60m -v -run TestMutants ./membership/memtest

# suffrage observe against real etcd 3.5 and 3.6: mesh-tests/README.md.
compat: build
	@set -e; e35=$$(mesh-tests/etcd.sh 35); e36=$$(mesh-tests/etcd.sh 36); \
	SUFFRAGE_BIN=$(CURDIR)/$(BIN) SUFFRAGE_ETCD_35=$$e35 SUFFRAGE_ETCD_36=$$e36 \
	  go test $(RACE) -count=1 -timeout 10m -v ./mesh-tests/compat

# Booted hosts, each with systemd as its first process: mesh-tests/README.md. It
# needs root, and installs with apt what is missing.
systemd: build
	@set -e; root=$$(mesh-tests/root.sh); \
	SUFFRAGE_ROOT=$$root SUFFRAGE_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 20m -v ./mesh-tests/systemd

# The dashboards and the alert rules, in a real Prometheus that scrapes the demo's
# fleet: mesh-tests/README.md. Debian's package is fetched where there is none. A host
# whose clock is off needs a program of its own, some minutes once.
prometheus: build
	@set -e; folder=$$(mesh-tests/prometheus.sh); clock=$$(mesh-tests/clock.sh); \
	SUFFRAGE_PROMETHEUS=$$folder SUFFRAGE_BIN=$(CURDIR)/$(BIN) SUFFRAGE_CLOCK_BIN=$$clock go test -count=1 -timeout 10m -v ./mesh-tests/prometheus

# The page in a real Chromium, of fleets that are made up and of the demo's:
# mesh-tests/README.md. Debian's package is installed where there is none.
page-test: build
	@set -e; chromium=$$(mesh-tests/chromium.sh); \
	SUFFRAGE_CHROMIUM=$$chromium SUFFRAGE_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 15m -v ./mesh-tests/page

# Hosts with networks and disks of their own, and what is done to them:
# mesh-tests/README.md. It needs root; RUN=TestSlowLink runs one scenario. What
# came of each run is added to bin/mesh-runs.jsonl. Hosts whose clocks are off need
# a program of their own, some minutes once; CLOCK= leaves it and TestClocks out.
RUN   ?= .
CLOCK ?= $(CURDIR)/bin/suffrage-clock
mesh: build
	test -z '$(CLOCK)' || mesh-tests/clock.sh
	SUFFRAGE_BIN=$(CURDIR)/$(BIN) SUFFRAGE_CLOCK_BIN=$(CLOCK) \
	  SUFFRAGE_MESH_RUNS=$(CURDIR)/bin/mesh-runs.jsonl \
	  go test -count=1 -timeout 60m -v -run '$(RUN)' ./mesh-tests/scenarios

# What agents say of the paths of a real Tailscale: mesh-tests/README.md. It needs
# root; tailscaled is built first where it is not yet, some minutes on two cores.
tailscale-test: build
	@set -e; programs=$$(mesh-tests/tailscale.sh); \
	SUFFRAGE_TAILSCALE=$$programs SUFFRAGE_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 20m -v ./mesh-tests/overlay

# The Lease, marks and reports in Kubernetes, against a real API server and with a
# real kubectl, which are built first where they are not yet: a quarter of an hour on
# two cores. UNBUILT=skip skips then.
kube-test:
	@set -e; server=$$(mesh-tests/kube.sh -n); \
	if [ ! -x "$$server" ] && [ "$(UNBUILT)" = skip ]; then \
	  echo "SKIPPED: kube-test: there is no $$server, and UNBUILT=skip" >&2; exit 0; \
	fi; \
	SUFFRAGE_KUBE_APISERVER=$$(mesh-tests/kube.sh); SUFFRAGE_KUBECTL=$$(mesh-tests/kubectl.sh); \
	export SUFFRAGE_KUBE_APISERVER SUFFRAGE_KUBECTL; \
	go test $(RACE) -count=1 -timeout 20m -parallel 3 -v ./lease/kubernetes ./membership/kube; \
	SUFFRAGE_EVERY_VOTER=1 go test -count=1 -timeout 20m -v -run TestKubernetes ./endpoint ./cmd/suffrage

# The K3s double against what K3s does, or K3S_BIN=/path/to/k3s itself:
# mesh-tests/README.md. It needs the API server, as kube-test does.
k3s-test: build
	@set -e; server=$$(mesh-tests/kube.sh -n); \
	if [ ! -x "$$server" ] && [ "$(UNBUILT)" = skip ]; then \
	  echo "SKIPPED: k3s-test: there is no $$server, and UNBUILT=skip" >&2; exit 0; \
	fi; \
	SUFFRAGE_KUBE_APISERVER=$$(mesh-tests/kube.sh); export SUFFRAGE_KUBE_APISERVER; \
	SUFFRAGE_BIN=$(CURDIR)/$(BIN) go test -count=1 -timeout 20m -v ./mesh-tests/k3s/...

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not formatted: $$out"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

# Figures for docs/performance.md.
bench:
	go test -run '^$$' -bench . -benchmem ./fitness ./membership ./membership/control ./report ./agent ./endpoint ./cmd/suffrage

# What a swap costs beside the same change by bare calls, and what a client sees
# of it: two election timeouts, two sizes of the database, some minutes.
bench-swap:
	SUFFRAGE_BENCH_SWAP=1 go test -count=1 -timeout 40m -v -run TestSwapCost ./cmd/suffrage

# Each fuzz target for so many inputs. A number, not a time: where a time ends
# while an input runs, Go 1.26 now and then calls that a failure, "context
# deadline exceeded" with no input to show for it (go.dev/issue/75804). Each
# package is built once, which takes longer than some thousand inputs.
FUZZ ?= 50000
fuzz:
	@set -e; new=$$(go env GOCACHE)/fuzz; built=$$(mktemp); trap 'rm -f "$$built"' EXIT; last=; \
	grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|/[^/]*:func | |' | sort | while read -r dir name; do \
	  echo "== $$dir $$name"; \
	  if [ "$$dir" != "$$last" ]; then go test -c -fuzz . -o "$$built" $$dir; last=$$dir; fi; \
	  (cd $$dir && "$$built" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZ)x -test.fuzzminimizetime 10x \
	    -test.fuzzcachedir "$$new/suffrage/$$dir"); \
	done

clean:
	rm -rf bin
