"""Analyse: what trained weights are like. One rule for each analysis in the table of stages.

in   a run's record; prepared arrays
out  {results}/hessians/RUN-DIGEST/hessian.json, {results}/activations/RUN-DIGEST/histograms.csv; provenance.json beside
"""

for stage in ANALYSES:

    rule:
        name:
            f"analyse_{stage}"
        input:
            dataset=lambda wildcards, stage=stage: PLAN.data_for(
                (stage, wildcards.analysis), PLAN.record((stage, wildcards.analysis))
            ),
            spec=lambda wildcards, stage=stage: f"{PLAN.folder(PLAN.needs((stage, wildcards.analysis))[0])}/spec.json",
            weights=lambda wildcards, stage=stage: f"{PLAN.folder(PLAN.needs((stage, wildcards.analysis))[0])}/weights.safetensors",
        output:
            [f"{RESULTS}/{STAGES[stage].folder}/{{analysis}}/{file}" for file in STAGES[stage].record],
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
            spec=lambda wildcards, stage=stage: PLAN.work[stage, wildcards.analysis],
            data=lambda wildcards, output, stage=stage: PLAN.data_of((stage, wildcards.analysis)),
            job=lambda wildcards, output, stage=stage: STAGES[stage].job,
        script:
            "../scripts/analyse.py"
