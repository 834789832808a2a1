# Two commands for a fresh machine with Python 3.10 or newer and make:
#   make demo    open a sample capture in the explorer
#   make test    run the tests
# The virtual environment is made on first use, in .venv.

PYTHON ?= python3
SAMPLE ?= samples/aks_decode_mode1
# twice as many tests at once as there are processors: they often wait for programs and screens. Files stay together,
# they share what they prepare, and come in the order of tests/conftest.py
JOBS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))))
PYTEST_ARGS ?= -n $(JOBS) --dist loadfile --no-loadscope-reorder
# the packages with a required line coverage
COVERED := model sources formats analysis export options
COVERAGE := $(COVERED:%=--cov=tpuprof_tui.%) --cov-report=term:skip-covered --cov-fail-under=95
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
# of these the first that the oldest packages have wheels for
LOWEST := $(firstword $(filter %3.10 %3.11,$(PYTHONS)))
VENV := .venv
BIN := $(VENV)/bin

#: Revision that answers are compared with.
BASE ?= HEAD
#: Seconds of coverage-guided fuzzing: by make fuzz, and as a part of make check.
FUZZ_SECONDS ?= 600
FUZZ_BRIEFLY ?= 60
#: Seconds of random keys: by make soak, and as a part of make check.
SOAK_SECONDS ?= 3600
SOAK_BRIEFLY ?= 60

.PHONY: help demo test compiled coverage lint check equal briefly bench bench-scale screenshots fuzz fuzz-briefly soak soak-briefly mutants fleet-test docs pythons packages bundle clean

help:
	@echo "make demo      open a sample capture in the explorer (SAMPLE=$(SAMPLE))"
	@echo "make test      install what the tests need, and run them"
	@echo "make lint      formatting, lint, types, import contracts"
	@echo "make coverage  the tests, with line coverage of $(COVERED)"
	@echo "make equal     what any answer about the samples and ../shared has become since BASE=$(BASE) (ALL=1: about all of them)"
	@echo "make fuzz      coverage-guided fuzzing of all readers (FUZZ_SECONDS=$(FUZZ_SECONDS))"
	@echo "make soak      random keys in the explorer: exceptions, slow keys, memory growth (SOAK_SECONDS=$(SOAK_SECONDS))"
	@echo "make mutants   mutation tests of pairing and clocks: mutants that no test detects"
	@echo "make check     the tests, lint, $(FUZZ_BRIEFLY) s each of fuzzing and random keys: the same as .ci/run"
	@echo "make fleet-test 2,000 captures as a data set: killed builds, Spark, polars, Ray, a failing object store (FLEET_ARGS)"
	@echo "make bench     measure speed and memory (make bench-scale: the explorer at ten million records)"
	@echo "make screenshots generate the pictures of the README from the samples"
	@echo "make docs      generate the manual page and the tables of keys from the program"
	@echo "make pythons   run the tests on $(PYTHONS), and with the oldest packages"
	@echo "make packages  run the tests that install wheel and bundle into new environments"
	@echo "make bundle    build one archive of all wheels, for machines without network"
	@echo "make clean     remove $(VENV)"

# Before anything runs: where a disk is full or files are limited, Python leaves bytecode that is cut off, and a module
# whose bytecode is cut off can never be imported again.
compiled: $(VENV)/installed
	@$(BIN)/python -m compileall -q tpuprof_tui

# status 1: something in the capture is lost, which the explorer has reported
demo: compiled
	$(BIN)/tpuprof $(SAMPLE) || test $$? -eq 1

# asserts that were rewritten once are kept, whatever the shell says of bytecode
test coverage: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/installed-test compiled
	$(BIN)/python -m pytest $(PYTEST_ARGS)

coverage: $(VENV)/installed-test compiled
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(COVERAGE)

lint: $(VENV)/installed-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check: test lint briefly

equal: $(VENV)/installed-test compiled
	@$(BIN)/python tests/equal/equal.py $(BASE) $(if $(ALL),--all) $(EQUAL_ARGS)

# fuzzing and random keys last as long as they are told to, so both at once
briefly: $(VENV)/installed-fuzz
	$(MAKE) --jobs 2 fuzz-briefly soak-briefly

fuzz: $(VENV)/installed-fuzz
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

fuzz-briefly: $(VENV)/installed-fuzz
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_BRIEFLY)

soak: $(VENV)/installed
	$(BIN)/python tests/soak/run.py --seconds $(SOAK_SECONDS) $(SOAK_ARGS)

soak-briefly: $(VENV)/installed
	$(BIN)/python tests/soak/run.py --seconds $(SOAK_BRIEFLY)

mutants: $(VENV)/installed-mutants
	$(BIN)/python tests/mutation/run.py $(MUTANT_ARGS)

fleet-test: $(VENV)/installed-fleet
	$(BIN)/python tests/fleet/run.py $(FLEET_ARGS)

bench: $(VENV)/installed
	$(BIN)/python tests/benchmarks/run.py $(BENCH_ARGS)

bench-scale: $(VENV)/installed
	$(BIN)/python tests/benchmarks/scale.py $(SCALE_ARGS)

screenshots: $(VENV)/installed
	$(BIN)/python screenshots/make.py $(SCREENSHOT_ARGS)

docs: $(VENV)/installed
	$(BIN)/python docs/make.py

pythons: $(BIN)/python
	$(BIN)/python packaging/pythons.py $(PYTHONS)
	$(if $(LOWEST),$(BIN)/python packaging/pythons.py --lowest $(LOWEST))

packages: $(VENV)/installed-test compiled
	$(BIN)/python -m pytest -m packages tests/packaging

bundle: $(BIN)/python
	$(BIN)/python packaging/bundle.py $(BUNDLE_ARGS)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "tpuprof needs Python 3.10 or newer; try make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV), once: about a minute and 250 MB"
	$(BIN)/python -m pip install --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) with the packages of the tests, once: about two minutes and 450 MB"
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[test]'
	@touch $(VENV)/installed $@

# where atheris cannot be installed, run.py says that nothing is fuzzed by coverage
$(VENV)/installed-fuzz: $(VENV)/installed-test
	-$(BIN)/python -m pip install --quiet --only-binary atheris --editable '.[fuzz]'
	@touch $@

$(VENV)/installed-mutants: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	@touch $@

$(VENV)/installed-fleet: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --editable '.[fleet]'
	@touch $@

$(VENV)/installed-lint: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[lint]'
	@touch $@
