# make demo, make test: both set everything up in .venv first. See README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
SOURCES := CMakeLists.txt pyproject.toml $(shell find src -name '*.cpp' -o -name '*.h')

.PHONY: demo test lint core-test python-test sanitize bench clean

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "scikit-build-core>=0.11" "nanobind>=2.9" cmake ninja
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	touch $@

$(STAMP): $(VENV)/.tools $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable .
	touch $@
