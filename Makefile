# Two commands: `make study` and `make test`. Both set up everything they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS := 1
# Compiled modules are kept: else every worker, and every process of a test, compiles them again.
export PYTHONDONTWRITEBYTECODE :=
PACKAGES := import sysconfig; print(sysconfig.get_path("purelib"))
# Three on two cores: many tests wait for processes or pages of their own.
SPREAD := -n 3 --dist worksteal
WITH_TOOLS := $(addprefix tests/test_,imports.py imports_fuzz.py sinks.py callbacks.py trl_parity*.py stats*.py frames.py envs_server.py figures.py pool.py language_nf4.py)

.PHONY: study test test-all check docs install browser core-env tools-env ray-env docs-env fixtures clean

# The embedded study: eight arms, five seeds, a report at the end.
study: install
	$(BIN)/kleash study

test: install core-env browser check
	$(BIN)/python -m pytest $(SPREAD) -m "not slow"

# Then, where the tools and oracles are: the tests that skip what they cannot import.
test-all: install core-env tools-env ray-env browser check
	$(BIN)/python -m pytest $(SPREAD) -m "not alone"
	$(BIN)/python -m pytest -m alone
	PYTHONPATH=src $(VENV)/tools/bin/python -m pytest $(SPREAD) -m "not slow" $(WITH_TOOLS)
	PYTHONPATH=src $(VENV)/ray/bin/python -m pytest $(wildcard tests/test_*_ray.py)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The site of docs/, in site/: a link or heading that is not there fails it.
docs: docs-env
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict

# Chromium for the tests of pages: as root on Debian it is installed, elsewhere they are skipped.
browser:
	@command -v chromium > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get install -qqy chromium > /dev/null 2>&1; } \
		|| echo "no chromium: browser tests are skipped; to run them: apt-get install chromium"

install: $(VENV)/.installed
core-env: $(VENV)/core/.installed
tools-env: $(VENV)/tools/.installed
ray-env: $(VENV)/ray/.installed
docs-env: $(VENV)/docs/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[train,dev]"
	touch $@

# The core alone, without torch: a test runs the command line in it.
$(VENV)/core/.installed: pyproject.toml constraints.txt $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/core
	$(VENV)/core/bin/python -m pip install -q -c constraints.txt -e .
	touch $@

# Trackers and oracles for `make test-all`; torch and all else that agrees is the main environment's.
$(VENV)/tools/.installed: constraints-tools.txt $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/tools
	$(BIN)/python -c '$(PACKAGES)' > "$$($(VENV)/tools/bin/python -c '$(PACKAGES)')/main.pth"
	$(VENV)/tools/bin/python -m pip install -q --no-deps -r constraints-tools.txt
	$(VENV)/tools/bin/python -m pip check
	touch $@

# Ray, beside the main environment in the same way.
$(VENV)/ray/.installed: constraints.txt $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/ray
	$(BIN)/python -c '$(PACKAGES)' > "$$($(VENV)/ray/bin/python -c '$(PACKAGES)')/main.pth"
	$(VENV)/ray/bin/python -m pip install -q -c constraints.txt "ray[client,train]"
	touch $@

# What makes the site, and nothing else.
$(VENV)/docs/.installed: constraints.txt
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install -q -c constraints.txt mkdocs-material
	touch $@

# Small runs made by other tools, kept for `make test`.
fixtures: tools-env
	$(VENV)/tools/bin/python scripts/make_fixtures.py

clean:
	rm -rf $(VENV) site build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
