"""Pages, and the report: one HTML file that holds a scale's results, to open from the disk with no network.

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
                f"{PAGES}/claims.html",
                caption="../report/claims.rst",
                category="Claims",
                labels={"page": "Claims and verdicts"},
            )
            for _ in PLAN.artifacts.keys() & {"claims"}
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
        runs=[
            report(
                f"{PAGES}/runs/{name}.html",
                caption="../report/run.rst",
                category="Runs",
                subcategory=PLAN.runs[name]["data"]["name"],
                labels=run_labels(PLAN, name),
            )
            for name in PLAN.kept()["runs"]
        ],
    log:
        f"{LOGS}/pages.log",
    benchmark:
        f"{LOGS}/pages.jsonl"
    conda:
        "../../envs/report.yaml"
    threads: PLAN.resources.report.threads
    resources:
        **PLAN.asks("report"),
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
    threads: PLAN.resources.report.threads
    resources:
        **PLAN.asks("report"),
    params:
        spec=lambda wildcards: pages_spec(PLAN),
    run:
        write_report(params.spec["config"], output.html, log[0])
