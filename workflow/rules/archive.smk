"""Archive: one file that holds a scale's results, and all that they rest on but the data.

in   tables, figures, and every record that they are made of; the source
out  {results}/archive/NAME-VERSION.zip (dpvision/archive/ says what is in it)
"""

from dpvision.archive.contents import archive_spec
from dpvision.source import NAME, VERSION


rule archive:
    """Pack everything that a reader needs to check the results, and to make them again."""
    input:
        lambda wildcards: PLAN.kept_files(),
    output:
        archive=f"{RESULTS}/archive/{NAME}-{VERSION}.zip",
    log:
        f"{LOGS}/archive/archive.log",
    benchmark:
        f"{LOGS}/archive/archive.jsonl"
    conda:
        "../../envs/report.yaml"
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        spec=lambda wildcards: archive_spec(PLAN),
    script:
        "../scripts/archive.py"
