# `make` alone lists the targets; each one sets up what it needs, in .venv, and nothing outside the checkout.
PYTHON ?= python3.11
BIN := .venv/bin
# Tools of .venv come first: an editable install builds with those it finds.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test mutations check format bench accuracy peers wheel test-wheel clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# Kernels are compiled here, and again on import when their sources change: by the system's C compiler or, where there is
# none, by that of the ziglang package.
ifeq ($(shell command -v $(CC) || command -v gcc || command -v clang),)
ZIG := $(CURDIR)/$(BIN)/python -m ziglang
COMPILER := 'ziglang>=0.13'
export CC := $(ZIG) cc -mcpu=baseline
export AR := $(ZIG) ar
endif

.venv/ready: pyproject.toml meson.build src/meson.build
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build $(COMPILER)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable . --group dev
	@touch $@

demo: .venv/ready  ## the paper's tables 1 and 2 on embedded data, and a report
	$(BIN)/bayesvote reproduce table1 table2 --folder reproduced --report reproduced/paper.html

reproduce: .venv/ready  ## all tables and figures, on all data sets at hand
	$(BIN)/bayesvote reproduce --folder reproduced --report reproduced/paper.html

test: check  ## check, then every test and doctest
	@$(BIN)/python -c 'import bayesvote'  # rebuilds changed kernels, once for all workers
	$(BIN)/pytest --numprocesses auto --dist loadfile

mutations: .venv/ready  ## wrong edits that the tests must catch, over an hour; ARGS="evaluate/ ensemble.py" for some
	$(BIN)/python tools/mutations.py $(ARGS)

check: .venv/ready  ## lint, format, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/import_layers.py

format: .venv/ready  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready  ## speed, as ratios measured side by side
	$(BIN)/python benchmarks/weights.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/one_row.py

accuracy: .venv/ready  ## error beside other libraries, some twenty minutes
	$(BIN)/python benchmarks/accuracy.py $(TRIALS)

peers: .venv/ready  ## error of the 32 configurations that table 6 names, over an hour; ARGS="--sets heart"
	$(BIN)/python benchmarks/table6.py $(ARGS)

wheel: .venv/ready  ## sdist and wheel, in dist
	rm -rf dist
	$(BIN)/python -m build

test-wheel: wheel  ## the README's first example from the wheel, in an empty environment without a compiler
	$(BIN)/python tools/try_wheel.py

clean:  ## remove what the other targets made
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
