# `make run` shows Homeostat at work, `make check` is the quick check while you edit, `make test` is everything.
# Each sets up what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JAVA_STAMP := $(VENV)/.java-found
# Print what each of two parallel commands says in one piece, where make can do that.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
.PHONY: help setup run kafka check test lint types layers counts quick unit soak screenshots lock clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(STAMP) $(JAVA_STAMP) ## virtual environment in .venv with the homeostat command and locked dependencies; a Java

# Modules are compiled when they are first imported: most of those in the libraries never are.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Homeostat needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Use: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	DIST_EXTRA_CONFIG=$(CURDIR)/.ci/wheels.cfg $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

$(JAVA_STAMP): $(STAMP)
	@.ci/java $(BIN)/python
	@touch $(JAVA_STAMP)

run: setup ## the main job: watch a word count on real Spark regulate itself, in the terminal and the browser
	$(BIN)/homeostat demo

kafka: setup ## a Kafka broker to play with; it prints how to write into it
	@$(BIN)/python -m homeostat.lab.kafka.play

check: lint layers counts ## linter, types, layers, limits and the quick tests, no Spark, no browser
	@$(MAKE) --no-print-directory -j2 $(SYNC) types quick

test: lint layers counts unit ## everything that must hold: 21 minutes on two cores with set-up

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

counts: setup
	$(BIN)/python .ci/counts

quick: setup
	@.ci/quick $(BIN)/python

unit: setup
	@.ci/chromium
	@.ci/postgres
	@.ci/tests $(BIN)/python

soak: setup ## the long runs that `make test` leaves out, and property tests with more examples: about three hours
	@.ci/chromium
	@.ci/soak $(BIN)/python

screenshots: setup ## the pictures of the dashboard in docs/pictures, from a simulated run
	@.ci/chromium
	PYTHONPATH=tests $(BIN)/python tests/web/screenshots.py docs/pictures

lock: setup ## pin the newest versions that pyproject.toml allows
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra kafka --extra plot --extra postgres --extra serve --extra spark --extra synopses --group dev --universal --generate-hashes \
	  --no-emit-index-url --no-header --python-version 3.11 --upgrade --quiet -o requirements.lock

clean: ## remove what setup made
	rm -rf $(VENV) .java .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
