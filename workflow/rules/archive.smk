"""Archive: one file that holds a scale's results, and all that they rest on but the data; and whether it holds.

in   tables, figures, and every record that they are made of; the source
out  {results}/archive/NAME-VERSION.zip (dpvision/archive/ says what is in it);
     {results}/archive/verified.txt: what `python -m dpvision verify` says of it, which must be that it holds
"""

from dpvision.archive.contents import archive_spec, files_to_archive
from dpvision.source import NAME, VERSION
from dpvision.verify.job import verify_code, write_verdict


rule archive:
    """Pack everything that a reader needs to check the results, and to make them again."""
    input:
        lambda wildcards: files_to_archive(PLAN),
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


rule verify:
    """Whether every digest, number and ε of the archive follows from its records: no script, since it reads of all stages."""
    input:
        archive=rules.archive.output.archive,
    output:
        verdict=f"{RESULTS}/archive/verified.txt",
    log:
        f"{LOGS}/archive/verify.log",
    threads: limits(PLAN, "report").threads
    resources:
        **asked(PLAN, "report"),
    params:
        code=verify_code(),
    run:
        write_verdict(input.archive, output.verdict, log[0])
