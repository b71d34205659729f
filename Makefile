PYTHON := .venv/bin/python
LOCK := .venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-package cascade-workbench $(LOCK_FLAGS)

.PHONY: setup test fast ranges lint bench mutants docs lock

setup:
	python3 -m venv .venv
	.venv/bin/pip install -q uv
	.venv/bin/uv pip install -q -p .venv --require-hashes -r requirements-dev.lock
	.venv/bin/pip install -q --no-build-isolation --no-deps -e .

test:
	$(PYTHON) -m pytest -q -n 2 --dist loadfile

# The pure core and the engine: no process, terminal or browser is started.
fast:
	$(PYTHON) -m pytest -q -n 2 --dist loadfile tests/context tests/language tests/engine

# The lowest and the newest versions that pyproject.toml allows, each in an environment of its own.
ranges:
	$(PYTHON) scripts/check_ranges.py

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench:
	$(PYTHON) -m compileall -q workbench bench
	$(PYTHON) -m bench

mutants:
	$(PYTHON) -m bench.mutants --seed $(or $(SEED),0) --count $(or $(COUNT),50)

docs:
	$(PYTHON) -m scripts.make_reference
	$(PYTHON) -m scripts.pictures

# The versions that are locked already stay, unless uv is told otherwise: make lock LOCK_FLAGS=--upgrade
lock:
	$(LOCK) pyproject.toml --extra dev -o requirements-dev.lock >/dev/null
	printf 'hatchling==1.33.0\neditables==0.6\n' | \
	  $(LOCK) pyproject.toml --extra examples - -c requirements-dev.lock -o requirements.lock >/dev/null
