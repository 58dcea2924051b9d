# `make` alone lists the targets; each one sets up what it needs, in .venv, and nothing outside the checkout.
PYTHON ?= python3.11
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test mutations check format bench accuracy peers clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: .venv/ready  ## the paper's tables 1 and 2 on embedded data, and a report
	$(BIN)/bayesvote reproduce table1 table2 --folder reproduced --report reproduced/paper.html

reproduce: .venv/ready  ## all tables and figures, on all data sets at hand
	$(BIN)/bayesvote reproduce --folder reproduced --report reproduced/paper.html

test: check  ## check, then every test and doctest
	$(BIN)/pytest --numprocesses auto --dist loadfile

mutations: .venv/ready  ## wrong edits that the tests must catch, over an hour; ARGS="evaluate/ ensemble.py" for some
	$(BIN)/python tools/mutations.py $(ARGS)

check: .venv/ready  ## lint, format, types, import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/ready  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready  ## speed, as ratios measured side by side
	$(BIN)/python benchmarks/weights.py
	$(BIN)/python benchmarks/speed.py

accuracy: .venv/ready  ## error beside other libraries, some twenty minutes
	$(BIN)/python benchmarks/accuracy.py $(TRIALS)

peers: .venv/ready  ## error of the 32 configurations that table 6 names, over an hour; ARGS="--sets heart"
	$(BIN)/python benchmarks/table6.py $(ARGS)

clean:  ## remove what the other targets made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
