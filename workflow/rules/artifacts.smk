"""Artifacts: tables, figures, and what a paper claims.

in   the records of the work that an artifact shows
out  {results}/tables/ARTIFACT.csv, .md, .tex; {results}/figures/ARTIFACT.svg, .pdf, .png, .csv; {results}/ARTIFACT.csv, .md;
     {results}/plan/ARTIFACT.json: the spec that it was made of, which is written last
"""

from dpvision.plan.artifact_state import mark_changed_spec


rule table:
    """A table: one frame as CSV, Markdown and LaTeX."""
    input:
        # by no name: it is nothing to read
        lambda wildcards: mark_changed_spec(PLAN, wildcards.artifact),
        unpack(lambda wildcards: PLAN.inputs_of(wildcards.artifact)),
    output:
        csv=f"{RESULTS}/tables/{{artifact}}.csv",
        md=f"{RESULTS}/tables/{{artifact}}.md",
        tex=f"{RESULTS}/tables/{{artifact}}.tex",
        plan=f"{RESULTS}/plan/{{artifact}}.json",
    log:
        f"{LOGS}/table/{{artifact}}.log",
    benchmark:
        f"{LOGS}/table/{{artifact}}.jsonl"
    wildcard_constraints:
        artifact=PLAN.pattern("tables"),
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: PLAN.artifacts[wildcards.artifact],
        # how things are called is not what they are: a function of output is not tracked
        labels=lambda wildcards, output: PLAN.labels[wildcards.artifact],
    script:
        "../scripts/table.py"


rule figure:
    """A figure as SVG, PDF and PNG, and what it shows as CSV."""
    input:
        # by no name: it is nothing to read
        lambda wildcards: mark_changed_spec(PLAN, wildcards.artifact),
        unpack(lambda wildcards: PLAN.inputs_of(wildcards.artifact)),
    output:
        svg=report(
            f"{RESULTS}/figures/{{artifact}}.svg",
            caption="../report/figure.rst",
            category="Figures",
            labels=lambda wildcards: {"figure": wildcards.artifact, "title": PLAN.labels[wildcards.artifact]["title"]},
        ),
        pdf=f"{RESULTS}/figures/{{artifact}}.pdf",
        png=f"{RESULTS}/figures/{{artifact}}.png",
        csv=f"{RESULTS}/figures/{{artifact}}.csv",
        plan=f"{RESULTS}/plan/{{artifact}}.json",
    log:
        f"{LOGS}/figure/{{artifact}}.log",
    benchmark:
        f"{LOGS}/figure/{{artifact}}.jsonl"
    wildcard_constraints:
        artifact=PLAN.pattern("figures"),
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: PLAN.artifacts[wildcards.artifact],
        labels=lambda wildcards, output: PLAN.labels[wildcards.artifact],
    script:
        "../scripts/figure.py"


rule verdicts:
    """A verdict on each claim of a paper, from all that it rests on: a page, its numbers, a figure of the effects."""
    input:
        # by no name: it is nothing to read
        lambda wildcards: mark_changed_spec(PLAN, wildcards.artifact),
        unpack(lambda wildcards: PLAN.inputs_of(wildcards.artifact)),
    output:
        csv=f"{RESULTS}/{{artifact}}.csv",
        md=f"{RESULTS}/{{artifact}}.md",
        svg=f"{RESULTS}/figures/{{artifact}}.svg",
        pdf=f"{RESULTS}/figures/{{artifact}}.pdf",
        png=f"{RESULTS}/figures/{{artifact}}.png",
        figure=f"{RESULTS}/figures/{{artifact}}.csv",
        plan=f"{RESULTS}/plan/{{artifact}}.json",
    log:
        f"{LOGS}/verdicts/{{artifact}}.log",
    benchmark:
        f"{LOGS}/verdicts/{{artifact}}.jsonl"
    wildcard_constraints:
        artifact="|".join(PLAN.of_kind("")) or "none",
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: PLAN.artifacts[wildcards.artifact],
        labels=lambda wildcards, output: PLAN.labels[wildcards.artifact],
    script:
        "../scripts/verdicts.py"
