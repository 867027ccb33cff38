# make demo, make test: both set everything up in .venv first, and need nothing but Python, a C++ compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := CMakeLists.txt pyproject.toml $(shell find src -name '*.cpp' -o -name '*.h')
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint types python-test core-test sanitize bench clean

demo: $(VENV)/.ready
	$(BIN)/python demo/icd10.py

test: lint types python-test core-test

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

python-test: $(VENV)/.ready
	$(BIN)/pytest -q

core-test: $(VENV)/.tools
	$(call build_core,build/core,)
	build/core/sapwood_core_tests

# The core's own tests, under the address and undefined-behaviour sanitizers, then under the thread sanitizer.
sanitize: $(VENV)/.tools
	$(call build_core,build/asan,address$(,)undefined)
	build/asan/sapwood_core_tests
	$(call build_core,build/tsan,thread)
	build/tsan/sapwood_core_tests

bench: $(VENV)/.ready
	@test -n "$(DATA)" || { echo "say where the data sets are: make bench DATA=folder"; exit 2; }
	PYTHON=$(BIN)/python sh benchmarks/setup_peers.sh
	$(BIN)/python benchmarks/label_tree.py --data $(DATA)
	$(BIN)/python benchmarks/label_tree_scaling.py --data $(DATA)

clean:
	rm -rf build $(VENV)

, := ,
define build_core
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -G Ninja -S . -B $(1) -DSAPWOOD_PYTHON=OFF -DSAPWOOD_CORE_TESTS=ON -DSAPWOOD_SANITIZE="$(2)" > $(1).log 2>&1 || { cat $(1).log; exit 1; }
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build $(1) >> $(1).log 2>&1 || { cat $(1).log; exit 1; }
endef

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install "scikit-build-core>=0.11" "nanobind>=2.9" cmake ninja
	$(PIP) install --group dev
	mkdir -p build
	touch $@

$(VENV)/.ready: $(VENV)/.tools $(SOURCES)
	$(PIP) install --no-build-isolation --editable .
	touch $@
