PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: setup demo fix check test slow bench cluster chaos rehearsal

$(VENV)/.run: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.done: $(VENV)/.run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

setup: $(VENV)/.done

# A whole study on invented languages, from nothing to its page; what it stores is in results/.
demo: $(VENV)/.run
	$(BIN)/sweep run demo
	$(BIN)/sweep report demo
	@echo
	@echo "MLflow:        $(BIN)/mlflow ui --backend-store-uri sqlite:///results/mlflow.db"
	@echo "One trial:     $(BIN)/sweep status demo --trials, then $(BIN)/sweep show TRIAL"
	@echo "Another seed:  $(BIN)/sweep run demo --set 'seeds.report=[1,2,3,4]'    (trains only what is new)"
	@echo "Your own:      $(BIN)/sweep new my-study --help"

fix: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -n 2 -m "not slow and not ray and not data"

test: setup
	$(BIN)/pytest -n 2 -m "not ray and not rehearsal"
	$(BIN)/pytest -m "ray and not cluster and not rehearsal"

# Every command of the README one after the other, and a study under fire.
rehearsal: setup
	$(BIN)/pytest -m rehearsal

# `ray up` on two hosts of network namespaces, and Ray's fake autoscaler: root, openssh-server, rsync, iproute2.
cluster: setup
	$(BIN)/pytest -m cluster

slow: setup
	$(BIN)/pytest -m "slow or ray"

# The trial against the Hugging Face Trainer needs real input: make bench DATA=ud ENCODER=folder
# Half an hour, most of it 10,000 one-second trials, ours and bare Tune's: TRIALS=1000 for a look.
TRIALS ?= 10000
bench: setup
	$(BIN)/python -m bench.similarity
	$(BIN)/python -m bench.scale
	$(BIN)/python -m bench.orchestration --trials $(TRIALS)
	$(if $(and $(DATA),$(ENCODER)),$(BIN)/python -m bench.trial --data $(DATA) --encoder $(ENCODER))

# A study of 60 trials while 50 workers, nodes and drivers are killed: make chaos CHAOS="--kills 20 --seed 7"
chaos: setup
	$(BIN)/python -m bench.chaos $(CHAOS)
