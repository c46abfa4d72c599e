# Two commands: `make study` and `make test`. Both set up everything they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS := 1

.PHONY: study test test-all check install core-env fixtures clean

# One training and its measuring; a whole study takes this place when `kleash study` exists.
study: install
	$(BIN)/kleash train configs/scenes.toml
	$(BIN)/kleash eval runs/scenes-s0 --checkpoint rce-5,epoch-3 --baselines

test: install core-env check
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: install core-env check
	$(BIN)/python -m pytest -n 2

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

install: $(VENV)/.installed
core-env: $(VENV)/core/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[train,dev]"
	touch $@

# The core alone, without torch: a test runs the command line in it.
$(VENV)/core/.installed: pyproject.toml constraints.txt $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/core
	$(VENV)/core/bin/python -m pip install -q -c constraints.txt -e .
	touch $@

# Small runs made by other tools, each in an environment of its own (minutes, a few GiB).
fixtures: install
	$(BIN)/python scripts/make_fixtures.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
