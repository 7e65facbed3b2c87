# `make demo` and `make test` set up everything they need in .venv; Python 3.11 or newer is all
# that has to be there before.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs dist bench mutants fuzz paper clean

demo: $(VENV)/installed
	$(BIN)/kmargin reproduce all --quick

# files of tests side by side, one per core; what all of them call is compiled before, once
test: $(VENV)/installed lint
	$(BIN)/python -m fuzz.warm
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

# the site, in docs/_build/html: examples that have changed are run, a warning is an error
docs: $(VENV)/docs
	$(BIN)/python -m sphinx -b html -W --keep-going --quiet $(SPHINXFLAGS) docs docs/_build/html
	@echo "The site is in docs/_build/html/index.html"

# what a release uploads: wheel and sdist, checked as the index would
dist: $(VENV)/installed
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist > /dev/null
	$(BIN)/python -m twine check --strict dist/*

# all cases, or one: make bench CASE=letters; BENCHFLAGS=--full for more seeds and larger sizes
bench: $(VENV)/bench
	$(BIN)/python -m benchmarks $(if $(CASE),--case $(CASE)) $(BENCHFLAGS)

# the mutation score of a random sample, with the survivors, in results/mutants.md: make mutants N=300 SEED=7;
# ONLY=sparsity draws from the source files with that in their path, and only prints the table
mutants: $(VENV)/installed
	$(BIN)/python -m mutants --n $(or $(N),300) --seed $(or $(SEED),7) $(if $(ONLY),--only $(ONLY)) $(MUTANTSFLAGS)

# generated cases, judged by oracles: make fuzz N=100000; FUZZFLAGS='--first 5000 --family scales' for some
fuzz: $(VENV)/installed
	$(BIN)/python -m fuzz --cases $(or $(N),10000) $(FUZZFLAGS)

# the paper's experiments in full, about an hour on two cores; what is in results/paper was made so
paper: $(VENV)/installed
	$(BIN)/kmargin reproduce all --protocol paper,shuffled --out results/paper

$(VENV)/docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

# the stamp is renewed when the list of dependencies changes
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "kmargin needs Python 3.11 or newer; say which one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

clean:
	rm -rf docs/_build docs/gallery docs/api/kmargin.*.rst dist
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .mutants
	find . -name __pycache__ -prune -exec rm -rf {} +
