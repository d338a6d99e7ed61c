# Polynya. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
# A stamp is newer than the files that its step was made from; a changed lock makes it stale.
DONE := $(VENV)/.done
INSTALL := scripts/install-packages $(VENV)
LOCKED := --require-hashes --no-deps --no-build-isolation
# So many test processes take the files of tests in turn; each may start a JVM of 2 GB. Tests wait for
# servers and processes a third of their time, so two cores are full with three.
JOBS := 3
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# The tests start hundreds of Python processes. An image that sets this would have each of them compile
# all modules again.
unexport PYTHONDONTWRITEBYTECODE

# The CDK's library prints ten lines at every start when Node.js is past its end of life.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := $(shell node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')

# The pinned command line of the CDK; it sends nothing home.
CDK := CDK_DISABLE_CLI_TELEMETRY=1 npx --no-install cdk --no-notices
stage-is-named = test -n "$(STAGE)" -a -n "$(wildcard config/$(STAGE).*)" || { \
  echo "there is no stage file config/$(STAGE).yml; fix: name one, as in \`make $@ STAGE=dev\`" >&2; exit 2; }

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: install
install: $(DONE)/runtime ## Set up .venv with .venv/bin/polynya, Java and the jars; nothing else
	@scripts/prepare-java $(VENV)

.PHONY: demo
demo: install ## Run the example project on a real PostgreSQL capture and check it against the source
	@$(BIN)/python -m examples.demo

# Needs the stand-in servers of the tests: moto, and that for Kinesis in node_modules.
.PHONY: cluster-demo
cluster-demo: node_modules/.package-lock.json
cluster-demo: dev ## Run four agents that share a project, lose nodes and get new ones; check the tables
	@$(BIN)/python -m tests.cluster_demo $(ARGS)

# Needs the servers of the tests: the jars of Kafka, which it fetches once, and node_modules.
.PHONY: demo-streams
demo-streams: node_modules/.package-lock.json
demo-streams: dev ## Land Kafka and Kinesis, kill servers and processes meanwhile, then verify every row
	@$(BIN)/python -m tests.streams_demo $(ARGS)

.PHONY: demo-postgres
demo-postgres: dev ## Capture a busy PostgreSQL, kill it and the capture, then compare every row
	@$(BIN)/python -m tests.capture_demo $(ARGS)

# Needs the Trino server of the slow tests, 0.8 GB, which it fetches once.
.PHONY: demo-consume
demo-consume: dev ## Read live tables with Spark, Trino, DuckDB, Python, Polars and a stand-in for Snowflake at one commit
	@$(BIN)/python -m tests.consume_demo $(ARGS)

##@ Develop

.PHONY: check
check: dev ## Run before each commit: lint, types, import contracts, reference pages, quick tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target \
	  type unit lint arrows docs-check

# The server that stands in for Kinesis, and the browser of the console's tests; without npm both are skipped.
NPM_PARTS := $(if $(shell command -v npm),node_modules/.package-lock.json)

# In a fresh clone the class archive takes half a minute of one core, beside all else that comes first.
.PHONY: test
test: ## Run everything that CI runs: `make check`, stacks, tests with a JVM; JOBS=3
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target dev $(NPM_PARTS) lint arrows docs-check
	@$(MAKE) --no-print-directory --jobs=2 type quick

# In a fresh clone mypy takes three quarters of a minute of one core: beside the tests it costs half.
.PHONY: quick
quick: dev $(NPM_PARTS) ## Run all tests of `make test`, without style and types
	@$(PYTEST) -m "not slow" $(ARGS)

.PHONY: test-slow
test-slow: node_modules/.package-lock.json $(DONE)/consumers
test-slow: dev ## Run the long tests: kills, every arrival order, random histories; SHARD=3/8 for a part
	@$(PYTEST) -m slow $(if $(SHARD),--shard $(SHARD)) $(ARGS)

# Its short form runs with all other tests; this one has the long tries, too.
.PHONY: security
security: dev ## Run the whole security suite: hostile files, values and settings; ARGS
	@$(PYTEST) tests/security $$($(BIN)/python -m tests.security) $(ARGS)

# One failure does not end it; each names its seed.
.PHONY: scenarios
scenarios: dev ## Simulate 500 random datasets and 250 captures and compare them with the fold; FIRST seed, COUNT
	@POLYNYA_TEST_SEED=$(or $(FIRST),1) POLYNYA_TEST_SCENARIOS=$(or $(COUNT),500) \
	  POLYNYA_TEST_LONG_LIVED=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal \
	  tests/scenarios $(ARGS)

# Without other work on the machine: the freshness that it measures is judged.
.PHONY: newcomer
newcomer: dev ## Replay a user's first days: pages, a feed, 2 x 15 minutes of files, broken machines; ARGS
	@$(BIN)/python -m tests.newcomer $(ARGS)

# Without other work on the machine: four hours, of steps and queries that are judged by time.
.PHONY: soak
soak: dev ## Feed ten tables for 2 hours, with and without maintenance, and check growth; ARGS=--help
	@$(BIN)/python -m tests.soak $(ARGS)

.PHONY: simulate-cluster
simulate-cluster: dev ## Simulate the cluster protocol under faults 200,000 times, on all cores; FIRST, COUNT
	@$(BIN)/python -m tests.cluster.simulation --first $(or $(FIRST),1) --count $(or $(COUNT),200000) $(ARGS)

.PHONY: cluster-faults
cluster-faults: dev ## Inject 40 single and 500 overlapping faults into three agents of two versions; FAULTS, SEED
	@$(BIN)/python -m tests.cluster_faults --faults $(or $(FAULTS),500) --seed $(or $(SEED),1) $(ARGS)

.PHONY: capture-kills
capture-kills: dev ## Kill a capture of a real PostgreSQL 100 times, then compare; KILLS, SEED
	@$(BIN)/python -m tests.capture.worker.kills --kills $(or $(KILLS),100) --seed $(or $(SEED),1)

.PHONY: derived
derived: dev ## Follow random statements over random histories and compare; STEPS, SEED
	@$(BIN)/python -m tests.derived --steps $(or $(STEPS),100000) --seed $(or $(SEED),1) $(ARGS)

.PHONY: corpus
corpus: dev ## Write which queries of TPC-H and TPC-DS are incremental to their page
	@$(BIN)/python -m tests.derived.corpus

.PHONY: random-capture
random-capture: dev ## Capture a random workload under kills, then compare; DATABASE, SEED, MINUTES
	@$(BIN)/python -m tests.random_capture --database $(or $(DATABASE),postgresql) \
	  --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) $(ARGS)

.PHONY: unit
unit: dev ## Run the tests without a JVM and without the stacks
	@$(PYTEST) -m "not spark and not slow and not synth" $(ARGS)

# The lock files are made for 3.11, which the JVM's tests, ruff and mypy stay on.
.PHONY: pythons
pythons: ## Run `make unit` with Python 3.12 and 3.13, each in a .venv of its own below build/
	@for version in 3.12 3.13; do \
	  if python=$$(scripts/find-python $$version); then \
	    $(MAKE) --no-print-directory unit VENV=build/python-$$version PYTHON=$$python; \
	  fi; \
	done

.PHONY: golden
golden: dev ## Write the golden SQL of the fold and the views from the code; review the difference
	@POLYNYA_TEST_GOLDEN=1 $(BIN)/python -m pytest -q tests/lake/fold/test_golden.py

# Tools that look at files need neither Java nor the jars.
.PHONY: lint
lint: $(DONE)/dev ## Check style and format with ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: fmt
fmt: dev ## Format, and fix what ruff can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: type
type: $(DONE)/dev ## Check the types with mypy, strict
	@$(BIN)/mypy

.PHONY: arrows
arrows: $(DONE)/dev ## Check the import contracts: dependencies point downwards
	@$(BIN)/lint-imports

.PHONY: bench
bench: install ## Run the benchmarks in bench/ and print their figures
	@$(BIN)/python -m bench

.PHONY: bench-floors
bench-floors: dev ## Compare loads, small batches, applies and views with hand-written Spark; ARGS=--help
	@$(BIN)/python -m bench.floors $(ARGS)

.PHONY: bench-peers
bench-peers: dev ## Compare applies with Iceberg MERGE, Delta, Hudi and Paimon, which it fetches; ARGS=--help
	@$(BIN)/python -m bench.peers $(ARGS)

.PHONY: bench-capture
bench-capture: dev ## Capture a PostgreSQL: rows and changes a second, age in the view, memory; ARGS=--help
	@$(BIN)/python -m bench capture $(ARGS)

.PHONY: bench-limits
bench-limits: dev ## Compare applies with the minimum: find the keys, write the rows; ARGS=--help
	@$(BIN)/python -m bench.limits $(ARGS)

.PHONY: bench-smoke
bench-smoke: dev ## Run both in tiny sizes: all contenders get the same rows; a minute, asserts no times
	@$(BIN)/python -m pytest -q tests/bench/test_floors.py tests/bench/test_peers.py

.PHONY: simulate
simulate: dev ## Simulate Spot shortages and the scaling strategies; what a stage costs; some seconds
	@$(BIN)/python -m bench fallback strategies costs

.PHONY: docs
docs: $(DONE)/docs reference ## Build the pages as a site with search, in build/site; a dead link fails
	@$(BIN)/python docs/site

.PHONY: reference
reference: install ## Write the reference pages and the JSON Schemas from the code
	@$(BIN)/python -m polynya.cli.reference docs/reference
	@$(BIN)/polynya schema export runtime/polynya/schema

.PHONY: docs-check
docs-check: $(DONE)/runtime ## Check that the reference pages and the JSON Schemas are those of the code
	@$(BIN)/python -m polynya.cli.reference docs/reference --check
	@$(BIN)/polynya schema export --check runtime/polynya/schema

.PHONY: synth
synth: dev node_modules/.package-lock.json ## Write the CloudFormation templates of all stages to cdk.out; no account needed
	@$(CDK) synth --quiet
	@find cdk.out -name '*.template.json' | sort

.PHONY: package
package: dev ## Build what nodes fetch, without Docker: for all stages, or ARCH=arm64|x86_64|all
	@$(BIN)/python -m stacks.package $(if $(ARCH),--arch $(ARCH))

# CI=true: a test that could not run has not passed.
.PHONY: boot-arm64
boot-arm64: dev node_modules/.package-lock.json ## Boot the package on an emulated arm64 node and let it copy; needs root and Debian 12
	@CI=true $(BIN)/python -m pytest -n 0 tests/stacks/test_boot_arm64.py $(ARGS)

.PHONY: publish
publish: dev ## Upload what the nodes of STAGE fetch to its asset bucket, with your credentials
	@$(stage-is-named)
	@$(BIN)/python -m stacks.publish --stage $(STAGE)

.PHONY: images
images: dev ## Look up the newest machine images for STAGE; write them into its file to use them
	@$(stage-is-named)
	@$(BIN)/python -m stacks.images --stage $(STAGE)

.PHONY: diff
diff: dev node_modules/.package-lock.json ## Show what deploying STAGE would change in your account
	@$(stage-is-named)
	@$(BIN)/python -m stacks.package --stage $(STAGE)
	@$(CDK) diff '$(STAGE)/*' $(ARGS)

.PHONY: deploy
deploy: dev node_modules/.package-lock.json ## Deploy STAGE with your AWS credentials; asks before it broadens permissions; TRIAL=no
	@$(stage-is-named)
	@$(BIN)/python -m stacks.package --stage $(STAGE)
	@$(BIN)/python -m stacks.publish --stage $(STAGE)
	@$(BIN)/python -m stacks.failed --stage $(STAGE)
	@$(CDK) deploy '$(STAGE)/*' --require-approval broadening -c polynya:deployed=$(STAGE) $(ARGS)
	@$(if $(filter no,$(TRIAL)),,$(BIN)/python -m stacks.trial --stage $(STAGE))

.PHONY: trial
trial: dev ## Let a node of each empty group of STAGE try the release that was deployed
	@$(stage-is-named)
	@$(BIN)/python -m stacks.trial --stage $(STAGE)

# Without YES=1 it only says what it would do. STAND_IN=1 tries it on this machine, without AWS.
.PHONY: verify-deploy
verify-deploy: dev node_modules/.package-lock.json ## Deploy a throw-away stage like STAGE, try it, remove it; YES=1
	@$(stage-is-named)
	@$(BIN)/python -m $(if $(STAND_IN),tests.stacks.verifying.stand_in,stacks.verify) \
	  --stage $(STAGE) $(if $(filter 1,$(YES)),--yes)

.PHONY: lock
lock: ## Rewrite requirements*.txt after a change of dependencies
	@scripts/lock

.PHONY: clean
clean: ## Delete what the tools and the demo wrote; keeps .venv
	@rm -rf cdk.out build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@rm -rf runtime/build constructs/build
	@find app.py stacks constructs runtime tests examples bench -name __pycache__ -type d -prune \
	  -exec rm -rf {} + 2>/dev/null || true

.PHONY: distclean
distclean: clean ## Delete .venv and node_modules too
	@rm -rf $(VENV) node_modules

# ---- set-up, done once ----

.PHONY: dev
dev: install $(DONE)/dev

$(DONE)/venv:
	@python=$$(scripts/find-python); echo "Creating $(VENV) with $$python"; \
	  rm -rf $(VENV); "$$python" -m venv $(VENV)
	@mkdir -p $(DONE); touch $@

$(DONE)/build: requirements/build.txt $(DONE)/venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $<
	@touch $@

$(DONE)/runtime: requirements.txt runtime/pyproject.toml $(DONE)/build
	@echo "Installing the locked packages (PySpark is large: up to a minute, once)"
	@$(INSTALL) $(LOCKED) --requirement $<
	@$(INSTALL) --no-deps --no-build-isolation --editable runtime
	@touch $@

$(DONE)/dev: requirements/dev.txt requirements/jdk.txt constructs/pyproject.toml $(DONE)/runtime
	@echo "Installing the development tools"
	@$(INSTALL) $(LOCKED) --requirement requirements/dev.txt --requirement requirements/jdk.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable constructs
	@flock $(DONE)/jars.lock $(BIN)/python -m polynya.lake.spark.jars fetch --group aws --group kafka --group msk >/dev/null
	@touch $@

# In a folder of its own: pandas and dbt bring NumPy and much else, which the runtime does without.
$(DONE)/consumers: requirements/consumers.txt $(DONE)/dev
	@rm -rf $(VENV)/consumers
	@$(INSTALL) --require-hashes --no-deps --target $(VENV)/consumers --requirement $<
	@touch $@

# The site documents the constructs too, so it needs the CDK.
$(DONE)/docs: requirements/docs.txt $(DONE)/dev
	@$(INSTALL) $(LOCKED) --requirement $<
	@touch $@

node_modules/.package-lock.json: package.json package-lock.json
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@
