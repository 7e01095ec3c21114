# The short names for what a person does here. Each makes what it needs: `make demo` on a fresh
# machine creates .venv, installs Java if it may, and runs.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
IMAGE_DOCKER ?= docker
PYTEST := $(PY) -m pytest
# These share nothing and start no processes to speak of: all cores at once, and one more process,
# because some wait.
QUICK := tests/unit tests/simulation
CAMPAIGN := tests/campaign
PROCESSES := $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
PARALLEL := $(PYTEST) -q --numprocesses $(PROCESSES) --dist worksteal
OTHERS := $(patsubst %,--ignore=%,$(QUICK) $(CAMPAIGN)) tests
# Most of these wait, for processes and timeouts: three at a time, a file with its cluster in one.
REAL := $(PYTEST) --numprocesses 3 --dist loadscope

# Spark's workers must be the interpreter that has pyspark_barnabas.
export PYSPARK_PYTHON := $(abspath $(PY))
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# Tests start thousands of processes: each module is compiled once, not in each of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install java demo test test-all check format lint simulate soak chaos proto image clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(STAMP) java ## make .venv with everything in it, and Java

demo: $(STAMP) java ## a real cluster, a real data set, the leader killed, nothing lost
	$(PY) demo/flights.py

check: lint ## lint, types, layers, one case of each unit test and simulation: before a commit
	@echo "the other tests can be imported"
	@found=$$($(PYTEST) -qq --collect-only $(patsubst %,--ignore=%,$(QUICK)) tests 2>&1) || { echo "$$found" | tail -n 40; exit 1; }
	$(PARALLEL) --cases 1 -m "not slow and not lengthy" $(QUICK)

format: $(STAMP) ## put the code in the project's format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: $(STAMP) java ## everything but the long proofs; what cannot run here is skipped and says so
	$(PARALLEL) -m "not slow" $(CAMPAIGN) $(QUICK)
	$(REAL) -m "not slow" $(OTHERS)

test-all: lint java ## everything
	$(PARALLEL) $(CAMPAIGN) $(QUICK)
	$(REAL) $(OTHERS)

simulate: $(STAMP) ## N=150 random schedules of whole clusters; SEED=... MODE=safety|liveness|steps
	$(PY) -m barnabas_simulator.campaign run $(or $(N),150) --seed $(or $(SEED),0) \
		$(if $(MODE),--mode $(MODE))

soak: $(STAMP) java ## HOURS=1 of random schedules and kill tests in turn, with a report; SEED=...
	$(PY) -m tests.support.soak "$(or $(HOURS),1)" $(if $(SEED),--seed "$(SEED)")

chaos: $(STAMP) ## the cluster in containers, broken on purpose: MINUTES=2 SEED= PROFILE=safe FAULTS=
	$(PY) -m barnabas_tools.chaos.run --minutes $(or $(MINUTES),2) --seed $(or $(SEED),1) \
		--profile $(or $(PROFILE),safe) $(if $(FAULTS),--faults $(FAULTS))

proto: $(STAMP) ## generate proto/barnabas_proto from the .proto files
	$(PY) proto/generate.py

image: ## build the images of docker-compose.yml, also where none can be pulled
	DOCKER=$(IMAGE_DOCKER) docker/make-base.sh
	for target in broker zookeeper faults; do \
		$(IMAGE_DOCKER) build --target $$target --tag barnabas-$$target . || exit 1; \
	done

clean: ## remove .venv, caches, builds and a stopped local cluster's folder
	@if [ -e .barnabas/cluster.json ] && [ -x $(VENV)/bin/barnabas ]; then \
		$(VENV)/bin/barnabas cluster destroy --yes; \
	fi
	rm -rf $(VENV) build dist .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
		.hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; \
		else \
			echo "Python's venv module is needed: install python3-venv" >&2; exit 1; \
		fi; \
	}
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --editable '.[dev]'
	@touch $(STAMP)

java:
	@command -v java >/dev/null 2>&1 || test -x "$${JAVA_HOME:-/none}/bin/java" || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && \
			apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null; \
		else \
			echo "Java 17 or newer is needed: install default-jre-headless or set JAVA_HOME" >&2; \
			exit 1; \
		fi; \
	}
