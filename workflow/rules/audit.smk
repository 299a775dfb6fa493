"""Audit: the engine attacked, whatever the papers are; target `audit`. Of a run: python -m dpvision audit RUN.

in   nothing: all data are made up
out  {results}/audits/engine-DIGEST/: audit.json (verdict, bounds, tests, the claim), tests.csv, roc.csv, steps.csv;
     {results}/figures/audit_roc, audit_steps .svg .pdf .png .csv
"""

AUDITED = [f"{RESULTS}/figures/audit_{what}.{kind}" for what in ("roc", "steps") for kind in ("csv", "svg", "pdf", "png")]


rule audit:
    """Everything about the engine's audit."""
    input:
        [file for name in PLAN.of("audit") for file in PLAN.record(("audit", name))],
        AUDITED,


rule audit_record:
    """Attack the step that trains, and say what that proves."""
    output:
        [f"{RESULTS}/audits/{{audit}}/{file}" for file in STAGES["audit"].record],
    log:
        f"{LOGS}/audit/{{audit}}.log",
    benchmark:
        f"{LOGS}/audit/{{audit}}.jsonl"
    conda:
        "../../envs/train.yaml"
    threads: 2
    resources:
        **{**asked(PLAN, "audit"), "mem_mb": 6000},
    params:
        spec=lambda wildcards: PLAN.work["audit", wildcards.audit],
    script:
        "../scripts/audit.py"


rule audit_figures:
    """What the audit found, drawn."""
    input:
        [PLAN.product(("audit", name)) for name in PLAN.of("audit")],
    output:
        AUDITED,
    log:
        f"{LOGS}/audit_figures/{next(iter(PLAN.of('audit')))}.log",
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    script:
        "../scripts/audit_figures.py"
