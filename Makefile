# Run `make help` for the targets.

GO      ?= go
SQLC     = $(GO) tool -modfile=tools/sqlc/go.mod sqlc
GOOSE    = $(GO) tool -modfile=tools/goose/go.mod goose
LINT     = $(GO) tool -modfile=tools/staticcheck/go.mod staticcheck

export GOFLAGS += -buildvcs=false
TEST_TIMEOUT ?= 40m
FUZZTIME     ?= 20s

.DEFAULT_GOAL := help

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# With -short a test that takes more than two seconds is left out.
test: ## Run the tests, but for the long ones (a minute, once everything is built)
	$(GO) test -short -timeout $(TEST_TIMEOUT) ./...

# What runs concurrently runs under the race detector, and only there; but for what is
# killed, which that would slow down and not see.
CONCURRENT = ^Test(Race|Cancel|Answer|Work|Together|Gather|Commit|Prune|Pause|Detached|HostTx|Completions|Bell|Await|Update)

test-long: ## Run every test, what runs concurrently under the race detector (ten minutes)
	$(GO) test -skip '$(CONCURRENT)' -timeout $(TEST_TIMEOUT) ./...
	$(GO) test -run TestRaceProcesses -timeout $(TEST_TIMEOUT) ./conformance
	$(GO) test -race -run '$(CONCURRENT)' -skip TestRaceProcesses -timeout $(TEST_TIMEOUT) ./...

check: generate-check ## Check formatting, vet, lint, generated code, SQL and migrations
	@test -z "$$(gofmt -l .)" || { echo "gofmt needed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(LINT) ./...
	cd bench && $(GO) vet ./... && $(GO) test -count 1 -timeout 5m ./...
	@! LC_ALL=C grep -rnP '[^\x00-\x7F]' db || { echo "SQL must be ASCII: sqlc can cut such a query short"; exit 1; }
	$(SQLC) vet --no-remote
	@for tree in db/migrations/*; do $(GOOSE) -dir $$tree validate || exit 1; done

generate: ## Generate the database code from db/
	rm -f internal/dbgen/*.sql.go internal/dbgen/postgres/*.sql.go
	$(SQLC) generate --no-remote

# sqlc diff does not see a file that no query needs any more, so the files are
# made anew and compared. What the shared queries are for PostgreSQL must be what they
# are for SQLite, but for the marks of parameters.
generate-check:
	@$(SQLC) diff --no-remote
	@tmp=$$(mktemp -d); cp -r db sqlc.yaml sqlc.shared.yaml $$tmp; \
	  sqlc=$$($(GO) tool -n -modfile=tools/sqlc/go.mod sqlc) && (cd $$tmp && $$sqlc generate --no-remote) && \
	  diff -r internal/dbgen $$tmp/internal/dbgen && (cd $$tmp && $$sqlc generate --no-remote -f sqlc.shared.yaml) && \
	  (for file in $$(ls $$tmp/shared); do \
	    sed -E 's/\?([0-9]+)/$$\1/g' internal/dbgen/$$file | diff - $$tmp/shared/$$file || \
	      { echo "internal/dbgen/$$file is another for PostgreSQL"; exit 1; }; \
	  done); status=$$?; rm -rf $$tmp; exit $$status

race: ## Run every test under the race detector
	$(GO) test -race -timeout 20m ./...

fuzz: ## Fuzz each target for FUZZTIME (20s)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; done; done

torture: ## Run the races, cancellations and crashes at full length
	TOOLRUNTIME_TORTURE=1 $(GO) test -race -timeout 30m -run 'TestRace|TestCancel|TestPostgres' -v ./conformance

crash: ## Kill a service, its workers and its bank 2,000 times on each database
	TOOLRUNTIME_CRASH_KILLS=$${TOOLRUNTIME_CRASH_KILLS:-2000} $(GO) test -run TestCrash -timeout 30m -v ./conformance

# Flags of bench: `cd bench && go run . -help` lists them. Its tests come first,
# because they hold the floor's settings against the ledger's.
BENCH       ?= -out ../docs/benchmarks.jsonl -docs ../docs
BENCH_SCALE ?= -out ../docs/benchmarks.scale.jsonl -docs ../docs -scale 2k,100k,1M,5M

bench: ## Measure against the bare SQL of the same transactions and against peers (15 minutes)
	cd bench && $(GO) test -count 1 -timeout 5m . && $(GO) run . $(BENCH)

bench-scale: ## Measure ledgers of up to 5 million operations (half an hour, 20 GB)
	cd bench && $(GO) test -count 1 -timeout 5m . && $(GO) run . $(BENCH_SCALE)

bench-workers: ## Measure claims beside a million ended operations, and work beside poison
	$(GO) test -run '^$$' -bench ClaimBatch -benchtime 50x ./toolruntime
	$(GO) test -run '^$$' -bench Poison -benchtime 3x ./toolruntime

.PHONY: help test test-long check generate generate-check race fuzz torture crash bench bench-scale bench-workers
