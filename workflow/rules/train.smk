"""Train: one run, one record.

in   prepared arrays; what it starts from, another run or a file of weights; best.json of the studies that the spec names
out  {results}/runs/RUN/: spec.json, metrics.json, history.csv, ledger.json, weights.safetensors, provenance.json
     (training/record.py says what each holds), and averaged.safetensors where the recipe averages;
     runs/RUN/.whole, which those are links to: a job that finds it there has nothing to do; runs/RUN/.owner: who trains it
     {results}/checkpoints/RUN/ while it is unfinished; {results}/choices/ how gradients are clipped, shared by runs of a kind
"""


rule train:
    """Train once with one seed; killed, it goes on where it was."""
    input:
        dataset=lambda wildcards: PLAN.data_for(("train", wildcards.run), PLAN.record(("train", wildcards.run))),
        start=lambda wildcards: PLAN.start_for(("train", wildcards.run), PLAN.record(("train", wildcards.run))),
        studies=lambda wildcards: [PLAN.product(key) for key in PLAN.needs(("train", wildcards.run)) if key[0] == "search"],
    output:
        spec=f"{RESULTS}/runs/{{run}}/spec.json",
        metrics=f"{RESULTS}/runs/{{run}}/metrics.json",
        history=f"{RESULTS}/runs/{{run}}/history.csv",
        ledger=f"{RESULTS}/runs/{{run}}/ledger.json",
        weights=f"{RESULTS}/runs/{{run}}/weights.safetensors",
        provenance=f"{RESULTS}/runs/{{run}}/provenance.json",
    log:
        f"{LOGS}/train/{{run}}.log",
    benchmark:
        f"{LOGS}/train/{{run}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: limits(PLAN, "train").threads
    resources:
        **asked(PLAN, "train", "run"),
    params:
        spec=lambda wildcards: PLAN.work["train", wildcards.run],
        # where things lie says nothing about the run: functions of output are not tracked
        data=lambda wildcards, output: PLAN.data_of(("train", wildcards.run)),
        # outside of the outputs, which are deleted before a rerun
        checkpoint=lambda wildcards, output: f"{RESULTS}/checkpoints/{wildcards.run}",
        decided=lambda wildcards, output: f"{RESULTS}/choices",
        begun=lambda wildcards, output: BEGUN,
    script:
        "../scripts/train.py"
