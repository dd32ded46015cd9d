# Two commands: `make run` does the package's main job, `make test` runs the whole suite.
# Both need only Python 3.11 or newer, make and git; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
READY := $(VENV)/.ready-$(VERSION)

# Isolated builds (of the package itself) are pinned as well, under both of pip's names for it.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

.PHONY: run test setup lint clean

# The page at http://127.0.0.1:5000, with the translator that comes with the package.
run: setup
	@if [ -f src/regard/builtin/translator/model.json ]; then $(BIN)/regard serve; else $(BIN)/regard work self-attention; fi

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

setup: $(READY)

# A .venv of another Python, or one that was left half made, is made anew.
$(READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "there is no $(PYTHON): make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "regard needs Python 3.11 or newer, and $(PYTHON) is $(VERSION): make PYTHON=python3.12 ..." >&2; exit 1; }
	@{ $(BIN)/python -m pip --version && $(BIN)/python -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(VERSION)")'; } \
	  >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@rm -f $(VENV)/.ready-*; touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) dist build
