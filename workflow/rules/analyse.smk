"""Analyse: what trained weights are like. One rule for each analysis in the table of stages.

in   a run's record; prepared arrays
out  {results}/hessians/RUN-DIGEST/hessian.json, {results}/activations/RUN-DIGEST/histograms.csv; provenance.json beside
"""


def analysed(stage):
    """The piece of work of a job, by its wildcards."""
    return lambda wildcards: (stage, wildcards.analysis)


for stage in ANALYSES:
    folder, records, key = f"{RESULTS}/{STAGES[stage].folder}/{{analysis}}", STAGES[stage].record, analysed(stage)

    rule:
        name:
            f"analyse_{stage}"
        input:
            dataset=lambda wildcards, key=key: PLAN.data_for(key(wildcards), PLAN.record(key(wildcards))),
            spec=lambda wildcards, key=key: f"{PLAN.folder(PLAN.needs(key(wildcards))[0])}/spec.json",
            weights=lambda wildcards, key=key: f"{PLAN.folder(PLAN.needs(key(wildcards))[0])}/weights.safetensors",
        output:
            [f"{folder}/{file}" for file in records],
        log:
            f"{LOGS}/{stage}/{{analysis}}.log",
        benchmark:
            f"{LOGS}/{stage}/{{analysis}}.jsonl"
        conda:
            "../../envs/train.yaml"
        threads: limits(PLAN, stage).threads
        resources:
            **asked(PLAN, stage, "analysis"),
        params:
            spec=lambda wildcards, key=key: PLAN.work[key(wildcards)],
            data=lambda wildcards, output, key=key: PLAN.data_of(key(wildcards)),
            job=lambda wildcards, output, stage=stage: STAGES[stage].job,
        script:
            "../scripts/analyse.py"
