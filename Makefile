# Run `make help` for the targets.

GO      ?= go
# A large part of sqlc's build is PostgreSQL's parser in C, which needs no optimising to
# parse a few files.
SQLC     = CGO_CFLAGS="-O0 -g0" $(GO) tool -modfile=tools/sqlc/go.mod sqlc
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

# What runs concurrently runs under the race detector; but for what is killed, which that
# would slow down and not see.
CONCURRENT = Test(Race|Cancel|Answer|Work|Together|Gather|Commit|Prune|Pause|Detached|HostTx|Completions|Bell|Await|Update|Verb)

# SQLite is compiled once more for the race detector, which does not look at C.
RACE = CGO_CFLAGS="-O1 -g0" $(GO) test -race

# What `test` has run is not run again: there follow the tests that ask for -short, by the
# function in which they do, and the concurrent ones. Of packages that have such tests alone,
# because every other one would be linked for nothing.
test-long: test ## Run every test, what runs concurrently under the race detector too (some minutes)
	@files=$$(grep -rl --include='*_test.go' 'testing\.Short()' .) && \
	  names=$$(awk '/^func /{name = $$2; sub(/\(.*/, "", name)} /testing\.Short\(\)/{print name}' $$files | grep -vE '^$(CONCURRENT)' | sort -u | paste -s -d '|' -) && \
	  packages=$$(dirname $$files | sort -u) && set -x && $(GO) test -run "^($$names|TestRaceProcesses)$$" -timeout $(TEST_TIMEOUT) $$packages
	$(RACE) -run '^$(CONCURRENT)' -skip TestRaceProcesses -timeout $(TEST_TIMEOUT) \
	  $$(grep -rlE --include='*_test.go' '^func $(CONCURRENT)' . | xargs -n 1 dirname | sort -u)

check: generate-check ## Check formatting, vet, lint, generated code, SQL and migrations
	@for tree in db/migrations/*; do $(GOOSE) -dir $$tree validate || exit 1; done
	@test -z "$$(gofmt -l .)" || { echo "gofmt needed:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(LINT) ./...
	cd bench && $(GO) vet ./... && $(GO) test -count 1 -timeout 5m ./...
	@! LC_ALL=C grep -rnP '[^\x00-\x7F]' db || { echo "SQL must be ASCII: sqlc can cut such a query short"; exit 1; }
	$(SQLC) vet --no-remote

generate: ## Generate the database code from db/
	$(GO) run ./internal/setsql db/queries/postgres/sets.sql
	rm -f internal/dbgen/*.sql.go internal/dbgen/postgres/*.sql.go
	$(SQLC) generate --no-remote

# sqlc diff does not see a file that no query needs any more, so the files are
# made anew and compared: all that it sees is seen so too.
generate-check:
	@$(GO) run ./internal/setsql - | diff db/queries/postgres/sets.sql - || \
	  { echo "db/queries/postgres/sets.sql is not what the tables' columns make: run make generate"; exit 1; }
	@tmp=$$(mktemp -d); cp -r db sqlc.yaml sqlc.shared.yaml $$tmp; \
	  sqlc=$$($(SQLC:tool=tool -n)) && (cd $$tmp && $$sqlc generate --no-remote) && \
	  diff -r internal/dbgen $$tmp/internal/dbgen && (cd $$tmp && $$sqlc generate --no-remote -f sqlc.shared.yaml) && \
	  (for file in $$(ls $$tmp/shared); do \
	    sed -E 's/\?([0-9]+)/$$\1/g' internal/dbgen/$$file | diff - $$tmp/shared/$$file || \
	      { echo "internal/dbgen/$$file is another for PostgreSQL"; exit 1; }; \
	  done); status=$$?; rm -rf $$tmp; exit $$status

race: ## Run every test under the race detector
	$(RACE) -timeout 20m ./...

fuzz: ## Fuzz each target for FUZZTIME (20s)
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; done; done

torture: ## Run the races, cancellations and crashes at full length
	TOOLRUNTIME_TORTURE=1 $(RACE) -timeout 30m -run 'TestRace|TestCancel|TestPostgres' -v ./conformance

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
