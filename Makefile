# make demo          set up, run the whole pipeline on data that comes with it, and say what it made
# make reproduce     ARCHIVE=file.zip ARTIFACT=table1: verify an archive, set up what it holds, make one artifact again, compare
# make test          set up, run the tests
# make test-report   make the demo and its report, look at that in a browser without a network (Debian, as root or with sudo)
# make test-planted  apply bugs that were made somewhere, each in a copy, and see that the audit notices: a quarter of an hour
# make test-cluster  set up, go through a real SLURM that is started here for it (Debian, as root or with sudo)
# make bench         measure what a private step costs: BENCH=quick in three minutes, else twenty
# make bench-plan    measure what the plan costs, up to 10,000 runs, in two minutes
# make bench-hessian   measure what a product of the Hessian with a vector costs, in four minutes
# make bench-simulation  train both ways, to see how well the scale simulate predicts, in ten minutes
# make lint          formats and linters (make format puts right what can be put right)
# make lock          resolve the dependencies anew, with hashes
# make schema        write the JSON schemas of the configuration

PYTHON ?= python3
CORES ?= 2
BENCH ?= full
BIN := .venv/bin

.PHONY: setup demo reproduce test test-report test-planted test-cluster bench bench-plan bench-simulation lint format lock schema
