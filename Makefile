# The same commands at the desk and in CI. `./owa` makes the environment they run in.
VENV ?= .venv
PY = $(VENV)/bin/python

.PHONY: demo test check slow long battery bench golden sweep format mutants map docs real-model

demo:
	./owa demo

test:
	./owa test

check:
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

slow:
	$(PY) -m pytest -n auto --dist worksteal -m slow

# Tests of which CI plays a part drawn by the commit, whole.
long:
	OWA_LONG_TESTS=1 $(PY) -m pytest -n auto --dist worksteal -m "slow or part"
	$(PY) benchmarks/cases.py --seeds 20

# The control battery of ChangeSurf, whole, in a real browser; writes its table too.
battery:
	$(PY) benchmarks/sweep.py --suite changesurf

format:
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# Every speed beside its peers, into docs/benchmarks.md; goes on where it was stopped. An hour or two.
bench:
	$(PY) benchmarks/speeds.py

# Re-make the golden digests of worlds and of what batteries ask; a change is a change of scores.
# And the cards of suites that `list` reads.
golden:
	$(PY) benchmarks/golden.py
	$(PY) benchmarks/golden_physics.py
	$(PY) benchmarks/battery_digests.py
	$(PY) benchmarks/suite_cards.py

# Do the tests of scoring and report notice a changed operator? 300 mutants by a committed seed.
mutants:
	$(PY) benchmarks/mutants.py

# A real model of 98 MB, from installation to figures; a quarter of an hour on two cores.
real-model:
	./owa setup
	$(PY) benchmarks/real_model.py

# Re-make the picture and the table of docs/map.md from the imports.
map:
	$(PY) benchmarks/package_map.py

# The pages as a site in dist/site; a link or heading that is not there fails it.
docs:
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

# The control battery, whole; commits its table to docs/tables/.
sweep:
	$(PY) benchmarks/sweep.py
