"""Report: its pages, and the page that holds them all; one HTML file that holds a scale's results, to open from the disk with no network.

in   tables, figures, claims, and every record that they are made of
out  {results}/report/: a page each for the overview, a table, the claims, a run, the cost, the environment;
     {results}/report.html: Snakemake's report of these and the figures, by category and label, with captions
"""

from dpvision.reporting.report import pages_spec, run_labels, write_report

PAGES = f"{RESULTS}/report"


rule pages:
    """The report's pages, all at once: each takes milliseconds."""
    input:
        lambda wildcards: PLAN.kept_files(),
    output:
        overview=report(
            f"{PAGES}/overview.html",
            caption="../report/overview.rst",
            category="Overview",
            labels={"page": "Overview"},
        ),
        home=f"{PAGES}/home.html",
        cost=report(
            f"{PAGES}/cost.html",
            caption="../report/cost.rst",
            category="Cost and environment",
            labels={"page": "Time and memory by rule"},
        ),
        environment=report(
            f"{PAGES}/environment.html",
            caption="../report/environment.rst",
            category="Cost and environment",
            labels={"page": "Machine, packages, lock"},
        ),
        claims=[
            report(
                f"{PAGES}/{name}.html",
                caption="../report/claims.rst",
                category="Claims",
                labels={"page": PLAN.labels[name]["paper"]},
            )
            for name in PLAN.of_kind("")
        ],
        tables=[
            report(
                f"{PAGES}/tables/{name}.html",
                caption="../report/table.rst",
                category="Tables",
                labels={"table": name, "title": PLAN.labels[name]["title"]},
            )
            for name in PLAN.of_kind("tables")
        ],
        # one output, however many runs there are: only the report itself looks at the pages in it
        runs=report(
            directory(f"{PAGES}/runs"),
            patterns=["{run}.html"],
            caption="../report/run.rst",
            category="Runs",
            subcategory=lambda wildcards: PLAN.runs[wildcards.run]["data"]["name"],
            labels=lambda wildcards: run_labels(PLAN, wildcards.run),
        ),
    log:
        f"{LOGS}/pages.log",
    benchmark:
        f"{LOGS}/pages.jsonl"
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: pages_spec(PLAN),
    script:
        "../scripts/pages.py"


rule report:
    """Snakemake's own report: no script, since those have environments without Snakemake."""
    input:
        rules.pages.output,
    output:
        html=f"{RESULTS}/report.html",
    log:
        f"{LOGS}/report.log",
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: pages_spec(PLAN),
    run:
        write_report(params.spec["config"], output.html, log[0])
