# make help              say what make can do
# make setup             make .venv from the lock: everything that the pipeline needs
# make demo              set up, run a selection of the pipeline on data that comes with it, verify it: six minutes
# make demo-all          the same with every artifact of every paper
# make test              set up, run the quick tests: ten minutes
# make test-all          set up, run these and the slow ones, which start many processes: a quarter of an hour
# make check             before a commit: format, lint, and run the tests that the change touches
# make laptop            train a private head on public weights, on real CIFAR-10: a table and a figure in six minutes
# make format            put right what formats and linters can put right
# make lint              formats and linters, without changing anything
# make reproduce         ARCHIVE=file.zip ARTIFACT=table1: verify an archive, set up what it holds, make one artifact again, compare
# make test-report       make the demo and its report, look at that in a browser without a network (Debian, as root or with sudo)
# make test-planted      apply bugs that were made somewhere, each in a copy, and see that the audit or a test notices: a quarter of an hour
# make test-cluster      set up, go through a real SLURM that is started here for it (Debian, as root or with sudo)
# make bench             measure what a private step costs: BENCH=quick in three minutes, else twelve
# make bench-plan        measure what the plan costs, up to 10,000 runs, in two minutes
# make bench-hessian     measure what a product of the Hessian with a vector costs, in four minutes
# make bench-decoding    measure what decoding pictures costs beside a private step, in a minute
# make bench-simulation  train both ways, to see how well the scale simulate predicts, in ten minutes
# make lock              resolve the dependencies anew, with hashes
# make schema            write the JSON schemas of the configuration, and config/README.md

PYTHON ?= python3
CORES ?= 2
BENCH ?= full
BIN := .venv/bin

.PHONY: help setup demo demo-all laptop test test-all check format lint reproduce test-report test-planted test-cluster bench bench-plan bench-hessian bench-decoding bench-simulation lock schema

help:
	@sed -n 's/^# make/make/p' Makefile

setup:
	@$(PYTHON) envs/install.py

demo: ASKED = artifacts=selection
demo-all: ASKED = 'papers=["scalenorm","smoothnets","de2022","halves"]'

demo demo-all: setup
	@$(BIN)/snakemake all report verify --cores $(CORES) --config scale=demo $(ASKED) --quiet host reason rules
	@cat results/demo/archive/verified.txt
	@echo "tables, figures, claims.md and what they rest on are in results/demo: python -m dpvision plan --scale demo lists them"
	@echo "all of it as one page, to open in a browser: results/demo/report.html"

laptop: setup
	@$(BIN)/snakemake laptop --cores $(CORES) --config scale=laptop --quiet host reason rules
	@cat results/laptop/tables/laptop_table.md

reproduce: setup
	@CORES=$(CORES) $(PYTHON) envs/reproduce.py "$(ARCHIVE)" "$(ARTIFACT)"

# one thread a worker: with more, workers wait for each other
test: setup
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n $(CORES) --dist loadfile

test-all: test
	@$(BIN)/python -m pytest -m slow

check: format lint
	@$(BIN)/python tests/check.py

test-report: setup
	@$(BIN)/snakemake report --cores $(CORES) --config scale=demo --quiet host reason rules
	@$(BIN)/python -m pytest tests/browser -rs

test-planted: setup
	@$(BIN)/python tests/planted/run.py

test-cluster: setup
	@$(BIN)/python -m pytest tests/cluster -rs

bench: setup
	@$(BIN)/python benchmarks/dp_step.py $(BENCH)

bench-plan: setup
	@$(BIN)/python benchmarks/plan.py

bench-hessian: setup
	@$(BIN)/python benchmarks/hessian.py

bench-decoding: setup
	@$(BIN)/python benchmarks/decoding.py

bench-simulation: setup
	@$(BIN)/python benchmarks/simulation.py

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/snakefmt --check Snakefile workflow/rules
	@$(BIN)/mypy
	@$(BIN)/snakemake --lint

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/snakefmt Snakefile workflow/rules

lock: setup
	@$(BIN)/python envs/lock.py

schema: setup
	@$(BIN)/python -m dpvision schema
