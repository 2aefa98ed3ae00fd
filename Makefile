# Everything runs in .venv, which `make setup` (part of every target that needs it) creates.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/.setup-done
# A package folder that is new needs a new installation.
PACKAGES := $(wildcard artifact/__init__.py training/__init__.py evaluation/__init__.py)
CHECKED := $(wildcard edgeinfinite artifact models export runtime_py training evaluation tests scripts experiments setup.py)

.PHONY: help setup demo test lint format typecheck pytest android clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 12

setup: $(STAMP)  ## the virtual environment with everything in it

$(STAMP): pyproject.toml setup.py scripts/setup.sh $(PACKAGES)
	@scripts/setup.sh
	@touch $@

demo: setup  ## exports the demo model, reads a long text, asks for what stood at its start
	@mkdir -p build
	@scripts/demo.sh

test: lint typecheck pytest android  ## everything that proves the product

lint: setup  ## formatting and lint
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

format: setup  ## formats the code, mends what lint can mend
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

typecheck: setup  ## mypy
	$(BIN)/python scripts/typecheck.py

pytest: setup  ## the tests alone; PYTEST_ARGS="-m 'not slow'" for the quick ones
	$(BIN)/python -m pytest $(PYTEST_ARGS)

android: setup  ## builds and tests android_demo/ with Maven, no Android SDK (see its README)
	PYTHON=$(CURDIR)/$(BIN)/python android_demo/ci/build.sh

clean:  ## removes what the other targets made
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
