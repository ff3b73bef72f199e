# Every target sets up what it needs in .venv (and .env-*, tests/*/node_modules); a second run finds it there.
# PYTHON=path/to/python chooses the interpreter; without it scripts/find-python.sh looks for one (3.12 or newer).

SHELL := /bin/sh
BIN := .venv/bin
ENVIRONMENT := scripts/environment.sh
INPUTS := pyproject.toml constraints.txt
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder

# Where this is set, the hundreds of processes that the tests start would each compile all that they import.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers docs docs-check captures captures-check check bench clean venv dev peers chromium

help:  ## list the targets
	@grep -E '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -e 's/:.*  ## /\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

demo: venv  ## two recorded sessions with deliberate faults, and their annotated transcripts
	@$(BIN)/mcpsniff demo

test: dev peers chromium  ## all tests, those with real clients, servers and a browser included
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: dev  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: dev  ## mypy --strict
	@$(BIN)/mypy --strict

layers: dev  ## import-linter: data flows one way
	@$(BIN)/lint-imports --no-cache --no-logo

docs: dev  ## write the generated blocks of README.md and docs/
	@$(BIN)/python docs/generate.py

docs-check: dev
	@$(BIN)/python docs/generate.py --check

captures: dev  ## build the sample captures and their transcripts
	@$(BIN)/python captures/make.py

captures-check: dev
	@$(BIN)/python captures/make.py --check

check: test lint types layers captures-check docs-check  ## everything that CI runs

bench: venv  ## benchmarks of the wrapper, of edit mode, of the HTTP relay, of the engine on mitmproxy, of the decoder, of the live view, of the HTML page and of the replay
	@$(BIN)/python bench/stdio.py
	@$(BIN)/python bench/edit.py
	@$(BIN)/python bench/http.py
	@$(BIN)/python bench/mitm.py
	@$(BIN)/python bench/decode.py
	@$(BIN)/python bench/tail.py
	@$(BIN)/python bench/html.py
	@$(BIN)/python bench/replay.py

clean:  ## remove the environments and caches
	rm -rf .venv .env-sdk1 .env-sdk2 tests/*/node_modules build dist \
	    .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The steps below do nothing, in a few hundredths of a second, when they are done already.

venv:
	@$(ENVIRONMENT) .venv run $(INPUTS) -- -c constraints.txt -e .
	@$(BIN)/python -m compileall -q mcpsniff  # where PYTHONDONTWRITEBYTECODE is set, each start would compile them anew

dev: venv
	@$(ENVIRONMENT) .venv dev $(INPUTS) -- -c constraints.txt $$($(BIN)/python scripts/dev_requirements.py dev)

peers:
	@scripts/peers.sh

chromium:
	@scripts/chromium.sh
