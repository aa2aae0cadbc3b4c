# Everything a reader or an author runs. Each target sets up what it needs in .venv by itself.

PYTHON ?= python3
ENGINE = press
# The environment's own Python, by a relative path: the checkout's may hold spaces.
RUN = .venv/bin/python
# Hundreds of processes start here, and each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Tests of one `xdist_group` share what is made for them, on one worker.
PYTEST = $(RUN) -m pytest -n auto --dist loadgroup
OF_TORCH = TRITON_INTERPRET=1 .venv-torch/bin/python -m pytest -n auto calc/codesign tests/calc/codesign \
	tests/calc/measure/gpu tests/calc/simulation/test_constrained.py tests/calc/simulation/test_sizing.py

.DEFAULT_GOAL := help
.PHONY: help book test test-slow test-torch test-nightly lint style bench lock clean set-up-book set-up-test set-up-torch

help:
	@echo 'make book                  render the book into _book/ (HTML and PDF)'
	@echo 'make book ENGINE=quarto    the same with Quarto, where it is installed'
	@echo 'make test                  style, and the tests but for the slow ones; with SLOW=too those too'
	@echo 'make test-slow             types, and the slow tests that every change runs'
	@echo 'make test-torch            the tests that need torch, numba and Triton, in .venv-torch'
	@echo 'make test-nightly          slow tests of every case, and properties on many more examples'
	@echo 'make set-up-test           bring what tests, lint and python -m tools.pages need into .venv, and run nothing'
	@echo 'make lint                  ruff and mypy alone'
	@echo 'make bench                 the benchmarks'
	@echo 'make lock                  bring tools/requirements/*.txt in line with pyproject.toml'
	@echo 'make clean                 remove what was rendered and cached; the environment .venv stays'
	@echo 'Another Python: make book PYTHON=python3.13'

# Quarto runs the chapters with what the tests run notebooks with.
book: set-up-$(if $(filter quarto,$(ENGINE)),test,book)
ifeq ($(ENGINE),press)
	@$(RUN) -m press render
else ifeq ($(ENGINE),quarto)
	@command -v quarto >/dev/null || { echo 'ENGINE=quarto needs the program quarto on PATH; without it: make book' >&2; exit 1; }
	@QUARTO_PYTHON="$(CURDIR)/$(RUN)" quarto render
else
	@echo 'ENGINE is press or quarto, not "$(ENGINE)".' >&2; exit 1
endif

test: style
	@$(PYTEST) $(if $(SLOW),-m "not nightly")

# mypy is one of the tests, so that it takes one core while the others run on the rest.
test-slow: set-up-test
	@$(PYTEST) -m "slow and not nightly"

test-torch: set-up-torch
	@$(OF_TORCH) -m "not nightly"

# All that is drawn is drawn in full, and every case of a kind is tried.
test-nightly: set-up-test set-up-torch
	@$(PYTEST) -m "slow or nightly or hypothesis" --hypothesis-profile=long
	@$(OF_TORCH) -m "" --hypothesis-profile=long

lint: style
	@$(RUN) -m mypy

style: set-up-test
	@$(RUN) -m ruff check
	@$(RUN) -m ruff format --check

bench: set-up-test
	@$(RUN) -m benchmarks

set-up-book set-up-test set-up-torch: set-up-%:
	@command -v "$(PYTHON)" >/dev/null || { echo 'There is no "$(PYTHON)" on PATH; Python 3.11 or newer is needed.' >&2; exit 1; }
	@"$(PYTHON)" tools/requirements/install.py $*
ifeq ($(MAKECMDGOALS),set-up-test)
	@echo 'Ready. Next: make test, or the part that you change, as docs/checking-a-change.md says.'
endif

# Versions already locked stay as they are; delete tools/requirements/*.txt first to take today's newest.
# The test lock is made first and the book's from within it, so that both hold the same versions.
COMPILE = "$$scratch/bin/uv" pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --annotation-style line \
	--custom-compile-command 'make lock' --group build
lock:
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && set -e && \
	"$(PYTHON)" -m venv "$$scratch" && \
	"$$scratch/bin/python" -m pip install --quiet --quiet uv && \
	$(COMPILE) --extra book --extra test -o tools/requirements/test.txt && \
	$(COMPILE) --extra book --constraint tools/requirements/test.txt -o tools/requirements/book.txt && \
	echo uv | "$$scratch/bin/uv" pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header -o tools/requirements/uv.txt

clean:
	rm -rf _book .press-cache _freeze .quarto build dist reference
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +
