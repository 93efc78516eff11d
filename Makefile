# `make demo` runs the main job, `make test` runs all checks and tests.
PYTHON ?= python3
# Another interpreter: make test PYTHON=python3.13 VENV=.venv-3.13
VENV ?= .venv
BIN := $(VENV)/bin
# Rebuilt whenever the dependency declarations change.
STAMP := $(VENV)/.installed
SOURCES := src tests benchmarks examples scripts

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-fast check format clean

help:
	@echo "make demo       install, then GFUCB against its baselines on handwritten digits (about 90 seconds)"
	@echo "make docs       install, then build the documentation site, build/site/html/index.html (about 20 seconds)"
	@echo "make test       install, then all checks and all tests (under 5 minutes on 2 cores)"
	@echo "make test-fast  install, then the tests that are not marked slow (under 1 minute)"
	@echo "make check      install, then lint, formatting, types and import layers only"
	@echo "make format     install, then format the sources"
	@echo "make clean      remove the environment and all caches, but not the runs"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip setuptools
	# torch by exact version first: a range may resolve to a build with gigabytes of CUDA libraries.
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[experiments,dev,docs]'
	@touch $@

demo: $(STAMP)
	$(BIN)/gfucb compare --preset demo --out runs/demo
	$(BIN)/gfucb report runs/demo

docs: $(STAMP)
	$(BIN)/python -m scripts.documentation

test: check
	$(BIN)/python -m pytest

test-fast: $(STAMP)
	$(BIN)/python -m pytest -m "not slow"

check: $(STAMP)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
