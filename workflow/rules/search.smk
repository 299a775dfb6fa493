"""Search: the values that the configuration leaves to a search.

in   prepared arrays
out  {results}/studies/STUDY/best.json, trials.csv, provenance.json; journal.log and trials/NUMBER/checkpoint hold the state between kills
"""


rule search_worker:
    """Train trials of a study until it has all of them; any number of workers share the study."""
    input:
        dataset=lambda wildcards: PLAN.data_for(
            ("search", wildcards.study), [f"{RESULTS}/studies/{wildcards.study}/workers/{wildcards.worker}.json"]
        ),
        start=lambda wildcards: PLAN.start_for(
            ("search", wildcards.study), [f"{RESULTS}/studies/{wildcards.study}/workers/{wildcards.worker}.json"]
        ),
    output:
        done=f"{RESULTS}/studies/{{study}}/workers/{{worker}}.json",
    log:
        f"{LOGS}/search_worker/{{study}}/{{worker}}.log",
    benchmark:
        f"{LOGS}/search_worker/{{study}}/{{worker}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: limits(PLAN, "search").threads
    resources:
        **asked(PLAN, "search", "study"),
    params:
        spec=lambda wildcards: PLAN.work["search", wildcards.study],
        data=lambda wildcards, output: PLAN.data_of(("search", wildcards.study)),
        decided=lambda wildcards, output: f"{RESULTS}/choices",
    script:
        "../scripts/search_worker.py"


rule search:
    """The best values of a study, and the table of its trials."""
    input:
        workers=[f"{RESULTS}/studies/{{study}}/workers/{worker}.json" for worker in range(PLAN.workers)],
    output:
        best=f"{RESULTS}/studies/{{study}}/best.json",
        trials=f"{RESULTS}/studies/{{study}}/trials.csv",
        provenance=f"{RESULTS}/studies/{{study}}/provenance.json",
    log:
        f"{LOGS}/search/{{study}}.log",
    benchmark:
        f"{LOGS}/search/{{study}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: 1
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: PLAN.work["search", wildcards.study],
    script:
        "../scripts/search.py"
