# Only python3, pip and make are needed: everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?= -n auto
# of each target of make fuzz
FUZZ_SECONDS ?= 70

.PHONY: help demo test fuzz lint types format figures docs wheel-check check clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 16

demo: $(STAMP)  ## show what it does, with nothing to download
	$(BIN)/gyroformer demo

test: $(STAMP)  ## run every test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

fuzz: $(STAMP)  ## run hostile cases for ten minutes, and write how many ran and failed to results/fuzz.csv
	PYTHONPATH=tests/helpers $(BIN)/python tests/helpers/fuzzing.py --seconds $(FUZZ_SECONDS)

lint: $(STAMP)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

format: $(STAMP)  ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

figures: $(STAMP)  ## draw the pictures, fill the tables and run the notebooks of the documentation
	$(BIN)/python scripts/make_figures.py
	$(BIN)/python scripts/make_tables.py
	$(BIN)/python scripts/run_notebooks.py

# the notice is about the next generation of mkdocs, which is another program
docs: $(STAMP)  ## build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html, or with search: $(BIN)/python -m http.server --directory site"

wheel-check: $(STAMP)  ## build the wheel, install it into an empty environment, use it
	PYTHON=$(PYTHON) BIN=$(BIN) sh scripts/wheel_check.sh

check: test lint types wheel-check  ## all that CI runs

$(STAMP): pyproject.toml constraints.txt
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV); }
	@echo "installing into $(VENV) (about a minute the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

clean:  ## remove what the commands made
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
