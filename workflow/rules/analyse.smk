"""Analyse: what trained weights are like.

in   a run's record; prepared arrays
out  {results}/hessians/RUN-DIGEST/hessian.json, provenance.json; {results}/activations/RUN-DIGEST/histograms.csv
"""


rule curvature:
    """Largest eigenvalue, trace and spectrum of the training loss's Hessian at a run's weights."""
    input:
        dataset=lambda wildcards: PLAN.data_for(
            PLAN.runs[PLAN.hessians[wildcards.analysis]["run"]], [f"{RESULTS}/hessians/{wildcards.analysis}/hessian.json"]
        ),
        spec=lambda wildcards: f"{RESULTS}/runs/{PLAN.hessians[wildcards.analysis]['run']}/spec.json",
        weights=lambda wildcards: f"{RESULTS}/runs/{PLAN.hessians[wildcards.analysis]['run']}/weights.safetensors",
    output:
        hessian=f"{RESULTS}/hessians/{{analysis}}/hessian.json",
        provenance=f"{RESULTS}/hessians/{{analysis}}/provenance.json",
    log:
        f"{LOGS}/curvature/{{analysis}}.log",
    benchmark:
        f"{LOGS}/curvature/{{analysis}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: PLAN.resources.curvature.threads
    resources:
        **PLAN.asks("curvature", PLAN.cost_of_hessian),
    params:
        spec=lambda wildcards: PLAN.hessians[wildcards.analysis],
        data=lambda wildcards, output: PLAN.data_of(PLAN.runs[PLAN.hessians[wildcards.analysis]["run"]]),
    script:
        "../scripts/curvature.py"


rule activations:
    """Histograms of the activations around a residual addition, with a run's weights."""
    input:
        dataset=lambda wildcards: PLAN.data_for(
            PLAN.runs[PLAN.activations[wildcards.analysis]["run"]],
            [f"{RESULTS}/activations/{wildcards.analysis}/histograms.csv"],
        ),
        spec=lambda wildcards: f"{RESULTS}/runs/{PLAN.activations[wildcards.analysis]['run']}/spec.json",
        weights=lambda wildcards: f"{RESULTS}/runs/{PLAN.activations[wildcards.analysis]['run']}/weights.safetensors",
    output:
        histograms=f"{RESULTS}/activations/{{analysis}}/histograms.csv",
        provenance=f"{RESULTS}/activations/{{analysis}}/provenance.json",
    log:
        f"{LOGS}/activations/{{analysis}}.log",
    benchmark:
        f"{LOGS}/activations/{{analysis}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: PLAN.resources.activations.threads
    resources:
        **PLAN.asks("activations", PLAN.cost_of_activations),
    params:
        spec=lambda wildcards: PLAN.activations[wildcards.analysis],
        data=lambda wildcards, output: PLAN.data_of(PLAN.runs[PLAN.activations[wildcards.analysis]["run"]]),
    script:
        "../scripts/activations.py"
