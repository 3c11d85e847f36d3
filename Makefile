# Every target makes .venv and installs what it needs; nothing is installed by hand.
PYTHON ?= python3
BIN := .venv/bin
PEERS ?=
TIMES ?= 20
MINUTES ?= 30
# Tests that need one of these are skipped, and counted, where it cannot be installed.
OPTIONAL := mpi,kubernetes,notebooks,onnx,tensorboard,prometheus,opentelemetry,dashboard,debugpy,browser,fast,fsspec
comma := ,
# All is installed by one command, which is the fastest; modules are compiled when they are first imported.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
# One process more than there are cores, because some tests wait.
PARALLEL := -n $(shell expr $$(nproc) + 1) --dist worksteal
# Modules are compiled once, not again in each process that a test starts, also where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: types demo guests dist docs docs-test test test-guests test-fast test-all soak flaky check bench bench-quick bench-docs bench-guests peers sweep proto signatures clean

# $(call install,EXTRAS): with the optional ones, or with those of them that can be installed.
define install
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(INSTALL) -e '.[$(1),$(OPTIONAL)]' || { $(INSTALL) -e '.[$(1)]' && \
		for extra in $(subst $(comma), ,$(OPTIONAL)); do $(INSTALL) -e ".[$$extra]" || \
		echo "the extra '$$extra' cannot be installed here: the tests that need it are skipped"; done; }
endef

.venv/installed: pyproject.toml
	$(call install,test$(comma)examples)
	@touch $@

.venv/docs: pyproject.toml
	$(call install,test$(comma)examples$(comma)docs)
	@touch .venv/installed $@

.venv/release: pyproject.toml
	$(call install,test$(comma)examples$(comma)release)
	@touch .venv/installed $@

.venv/dev: pyproject.toml
	$(call install,test$(comma)examples$(comma)dev)
	@touch .venv/installed $@

demo: .venv/installed      ## one parameter server, two trainers, real digits
	@$(BIN)/telegrad demo

test: .venv/installed      ## the tests, in parallel; TESTS narrows it: make test TESTS="tests/core/test_futures.py -x"
	@$(BIN)/python -m pytest $(PARALLEL) -m "not long and not soak" $(TESTS)

TORCH ?= torch==2.13.0# a build without CUDA is a quarter of the size, where the index has one

guests: .venv/guests/installed ## an environment with the libraries whose arrays travel: PyTorch and JAX beside what .venv has

.venv/guests/installed: .venv/installed
	@$(PYTHON) -m venv .venv/guests
	@.venv/guests/bin/pip install --quiet --disable-pip-version-check --no-compile "$(TORCH)" jax optax array-api-strict numpy
	@for site in .venv/guests/lib/python*/site-packages; do (cd .venv/lib/python*/site-packages && pwd) > $$site/telegrad.pth; done
	@cp .venv/lib/python*/site-packages/__editable__* .venv/guests/lib/python*/site-packages/
	@touch $@

test-guests: guests        ## the tests that need PyTorch or JAX; without that environment, `make test` counts them as skipped
	@.venv/guests/bin/python -m telegrad.tools.gate $(PARALLEL) -m "not long and not soak" tests/guests $(TESTS)

test-fast: .venv/installed ## those that start no process and are not slow, in less than a minute
	@$(BIN)/python -m pytest $(PARALLEL) -m "not long and not soak and not slow and not processes" $(TESTS)

test-all: .venv/installed  ## those marked long too: a run of chaos, arrays of 64 MiB; repeats alone what failed
	@$(BIN)/python -m telegrad.tools.gate $(PARALLEL) -m "not soak" $(TESTS)

soak: .venv/installed      ## more seeds of random programs and schedules than test-all has
	@$(BIN)/python -m pytest $(PARALLEL) -m soak $(TESTS)

flaky: .venv/installed     ## tests that start processes, many times under load: make flaky TESTS=tests/rref TIMES=20 MINUTES=30
	@$(BIN)/python -m telegrad.tools.flaky --times $(TIMES) --minutes $(MINUTES) $(TESTS)

# mypy's own workers do not always come up on a machine that is busy: then one process checks all.
MYPY = ../../$(BIN)/mypy --cache-dir ../../.mypy_cache --config-file ../../pyproject.toml

COPY = $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-compile --target build/check .
PYRIGHT ?= basedpyright==1.40.2# it has Node.js as a wheel

check: .venv/dev           ## ruff, mypy --strict (the tutorials too), generated code is fresh
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python proto/generate.py --check
	@$(BIN)/python -m telegrad.core.signatures.write --check
	@rm -rf build && $(COPY) && cp -r benchmarks tools build/check/telegrad/
	@cd build/check && { MYPYPATH=. $(MYPY) -n $$(nproc) -p telegrad || MYPYPATH=. $(MYPY) -p telegrad; }
	@$(BIN)/python docs/tutorial_programs.py build/tutorials
	@cd build/tutorials && MYPYPATH=../check $(MYPY) --explicit-package-bases .

types: .venv/dev           ## pyright on the tutorials, but for programs of PyTorch; its 65 MB are too much for make check
	@$(BIN)/pip install --quiet --disable-pip-version-check '$(PYRIGHT)'
	@rm -rf build && $(COPY)
	@$(BIN)/python docs/tutorial_programs.py build/tutorials && cp docs/pyrightconfig.json build/tutorials/
	@$(BIN)/basedpyright --project build/tutorials --pythonpath $(BIN)/python

bench: .venv/installed     ## RPC and tensors beside other libraries: make bench PEERS="torch=PYTHON rpyc=PYTHON", beside those of make peers
	@$(BIN)/python -m telegrad.benchmarks.rpc $(PEERS:%=--peer %)
	@$(BIN)/python -m telegrad.benchmarks.local $(PEERS:%=--peer %)

bench-quick: .venv/installed ## the most important part of it, in less than two minutes
	@$(BIN)/python -m telegrad.benchmarks.rpc --quick $(PEERS:%=--peer %)

sweep: .venv/installed     ## operations on tensors beside PyTorch's, the slowest first
	@$(BIN)/python -m telegrad.benchmarks.sweep $(PEERS:%=--peer %)

bench-docs: .venv/installed ## measure RPC, and write tables and picture into docs/performance.md
	@$(BIN)/python -m telegrad.benchmarks.rpc $(PEERS:%=--peer %) --json docs/performance/results.json
	@$(BIN)/python -m telegrad.benchmarks.publish docs/performance/results.json

bench-guests: guests       ## measure PyTorch's tensors over Telegrad beside PyTorch's RPC, and write the table into docs/guests.md
	@.venv/guests/bin/python -m telegrad.benchmarks.guests $(PEERS:%=--peer %) --json docs/performance/guests.json
	@.venv/guests/bin/python -m telegrad.benchmarks.publish_guests docs/performance/guests.json

peers: .venv/installed     ## an environment for each library that the benchmarks compare with
	@$(BIN)/python -m telegrad.benchmarks.environments

docs: .venv/docs           ## the site, in docs/_build/html; warnings are errors
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -j auto -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-test: .venv/installed ## the programs and commands of every page, and the notebooks; `make test` runs the quick ones
	@$(BIN)/python -m pytest $(PARALLEL) tests/package/test_docs_*.py $(TESTS)

PYTHONS ?=# interpreters; without, each python3.10 to python3.14 on the path

dist: .venv/release        ## wheel, source archive and list of components of the last commit, checked, in dist/
	@$(BIN)/python -m telegrad.tools.release $(if $(PYTHONS),--python $(PYTHONS))

proto: .venv/dev           ## regenerate proto/*_pb2.py and their stubs
	@$(BIN)/python proto/generate.py

signatures: .venv/dev      ## regenerate the stubs in core/signatures/, after adding an operation
	@$(BIN)/python -m telegrad.core.signatures.write

clean:
	@rm -rf .venv build dist docs/_build docs/api *.egg-info telegrad_runs
