# `make` lists the targets. Each target sets up what it needs in .venv, and nothing outside the checkout.
# Longer jobs are commands: `python -m benchmarks --list` and `python -m tools --list`.
PYTHON ?= python3.11
BIN := .venv/bin
# Tools of .venv come first, because an editable install builds with the tools it finds in PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast check format docs wheel bench serve-demo lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Kernels are compiled at installation, and again on import when their sources change. Without a C compiler on the system,
# the one of the ziglang package compiles them.
ifeq ($(shell command -v $(CC) || command -v gcc || command -v clang),)
ZIG := $(CURDIR)/$(BIN)/python -m ziglang
COMPILER := 'ziglang>=0.13'
export CC := $(ZIG) cc -mcpu=baseline
export AR := $(ZIG) ar
endif

# Dependencies are the versions of requirements.lock, with checksums. LOCKED=no installs the newest versions that
# pyproject.toml allows.
LOCKED ?= yes

.venv/ready: pyproject.toml paper/pyproject.toml meson.build src/meson.build src/bayesvote/core/version.py requirements.lock
	$(PYTHON) -m venv .venv
ifeq ($(LOCKED),yes)
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: --requirement requirements.lock || { \
		echo 'requirements.lock could not be installed (see above). It is for Python 3.11 on Linux, x86-64.' >&2; \
		echo 'With another Python or system, run: make LOCKED=no TARGET' >&2; exit 1; }
	$(if $(COMPILER),$(BIN)/python -m pip install --quiet $(COMPILER))
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable . --editable paper
else
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build $(COMPILER)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable . --editable paper --group dev
endif
	@touch $@

FAST := tests/members tests/weighting tests/boosting tests/tables tests/test_ensemble.py tests/test_losses.py

demo: .venv/ready  ## reproduce tables 1 and 2 of the paper on embedded data, with a report page
	$(BIN)/bayesvote reproduce table1 table2 --folder reproduced --report reproduced/paper.html

test: check  ## run check, then all tests and doctests
	@$(BIN)/python -c 'import bayesvote'  # compiles changed kernels once, before the workers start
	$(BIN)/pytest --numprocesses auto --dist loadfile

test-fast: .venv/ready  ## run the tests of members, weights and model files, in under a minute
	@$(BIN)/python -c 'import bayesvote'
	$(BIN)/pytest --numprocesses auto --dist loadfile --exitfirst $(FAST)

check: .venv/ready  ## check lint, format, types, import layers, and figures in the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools import_layers
	$(BIN)/python -m benchmarks pages --check

format: .venv/ready  ## format the sources and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/ready  ## write measured figures into README.md and docs, then run their examples
	$(BIN)/python -m benchmarks pages
	$(BIN)/pytest README.md docs

bench: .venv/ready  ## measure speed, as ratios measured side by side
	$(BIN)/python -m benchmarks weights
	$(BIN)/python -m benchmarks speed
	$(BIN)/python -m benchmarks one_row

serve-demo: .venv/ready  ## start the learning service on embedded data, with late labels and a live page
	$(BIN)/python examples/serve.py

lock: .venv/ready  ## resolve the dependencies again and write requirements.lock
	$(BIN)/python -m tools lock

wheel: .venv/ready  ## build sdist and wheel, and try the wheel in an empty environment
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m tools try_wheel

clean:  ## remove everything that the other targets made
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
