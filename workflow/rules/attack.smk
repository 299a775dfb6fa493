"""Attack: a paper's own audit. Many models are trained with an example and without it, and told apart by their loss on it.

in   prepared arrays
out  {results}/attacks/ATTACK/: attack.json (counts, threshold, bounds), tried.csv (phase one), scores.npz, provenance.json
"""


rule attack:
    """Attack a training; killed, it goes on where it was."""
    input:
        dataset=lambda wildcards: PLAN.data_for(("attack", wildcards.attack), PLAN.record(("attack", wildcards.attack))),
    output:
        [f"{RESULTS}/attacks/{{attack}}/{file}" for file in STAGES["attack"].record],
    log:
        f"{LOGS}/attack/{{attack}}.log",
    benchmark:
        f"{LOGS}/attack/{{attack}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: limits(PLAN, "attack").threads
    resources:
        **asked(PLAN, "attack", "attack"),
    params:
        spec=lambda wildcards: PLAN.work["attack", wildcards.attack],
        data=lambda wildcards, output: PLAN.data_of(("attack", wildcards.attack)),
    script:
        "../scripts/attack.py"
