"""An appendix for artifact committees: what is claimed, how each result is made again, what it takes, what cannot be."""

from collections.abc import Iterator, Sequence

from dpvision.evidence.kept import Kept
from dpvision.files import read_json
from dpvision.logs import clock
from dpvision.plan import Plan

BEGINNING = """# Artifact appendix

Made by `python -m dpvision evidence` from the records in this folder. An archive for a committee, one file with code, records
and a manifest of digests: `snakemake archive --config scale=SCALE` ([docs/archive.md](../archive.md)).

## Abstract

A pipeline that reproduces three papers on differentially private image classification, from the download of the data to every
table and figure. Each training leaves a record: what was asked for, the results, the ε it spent by several accountants, the
code and packages that made it. Every table is made of records, and `python -m dpvision verify` recomputes it.

## Description and requirements

- **Access**: this repository; its licence is Apache 2.0.
- **Hardware**: two cores for what is kept here; the memory of its jobs stands with each scale below. Scale `paper` wants
  graphics cards of 16 GB or more. How long, and how much memory: `python -m dpvision plan --cost --device A100`.
- **Software**: Python 3.11 or newer and make. `make setup` installs the locked packages by hash; conda and Apptainer files hold
  the same versions ([docs/environments.md](../environments.md)).
- **Data**: what the configuration names is downloaded and checked by digest.
  What has to be brought: [docs/data.md](../data.md).
- **Security, privacy, ethics**: no personal data but the public data sets' own. Noise follows from a seed where a recipe does
  not ask for secret noise, so weights are research results and not releases.

## Set-up and a basic test

    make demo     # the whole pipeline on data that comes with it, six minutes on two cores
    make test     # the quick tests, eight minutes on two cores
"""
ENDING = """
## What cannot be made again here

- A result *simulated* predicts the accuracy of a private training; it does not replace it.
- JFT-300M and JFT-4B are not public. The rows of De et al. that rest on them are printed beside ours, and stay empty.
- Bits repeat on one kind of processor, with the locked packages and the same choices of how gradients are clipped
  ([docs/clipping.md](../clipping.md)). Elsewhere they do not.
"""


def appendix(papers: Plan, kept: Sequence[Kept]) -> str:
    """Return the appendix; `papers` is the plan of the scale paper."""
    lines = [BEGINNING, "## Major claims", "", *_claims(papers), "", "## Experiments", ""]
    lines += [line for each in kept for line in _experiments(each)]
    return "\n".join(lines) + "\n" + ENDING


def _claims(papers: Plan) -> Iterator[str]:
    """Yield the papers' headline numbers as claims."""
    numbers = [(paper, number) for paper, of in papers.headlines.items() for number in of if "beyond" not in number]
    for i, (paper, number) in enumerate(numbers, 1):
        yield f"- **(C{i})** {paper}: {number['headline']}: {number['value']:g}. Made by `snakemake {number['artifact']}`."
    yield "- Each further sentence, with its verdict: `claims.md` of each scale."


def _experiments(kept: Kept) -> Iterator[str]:
    """Yield how a scale's artifacts are made again, and what their trainings took where they were made."""
    runs = list((kept.folder / "runs").glob("*/provenance.json"))
    if not runs:
        yield f"- **Scale `{kept.scale}`** follows from the configuration, without any training, in a minute:"
        yield f"  `python -m dpvision keep docs/results/{kept.scale} --scale {kept.scale}`."
        return
    made = [read_json(file) for file in runs]
    peak = max(read_json(file).get("peak_memory_mb", 0) for file in kept.folder.glob("*/*/provenance.json"))
    seconds = sum(session["seconds"] for record in made for session in record["sessions"])
    machines = {f"{record['machine']['processor']}, {record['machine']['cores']} cores" for record in made}
    artifacts = ", ".join(f"`{name}`" for name in kept.labels if (kept.folder / "plan" / f"{name}.json").exists())
    yield f"- **Scale `{kept.scale}`**, {kept.plan.title}: {artifacts}."
    yield f"  - Command: `snakemake all --cores 2 {kept.plan.asked_by()}`; one artifact: its name in the place of `all`."
    took = (
        f"{len(made)} of {len(kept.plan.runs)} trainings, {clock(seconds)} of work together, on {'; '.join(sorted(machines))}"
    )
    yield f"  - Time: {took}. Searches, data, features, analyses and attacks are not counted. The largest job took {peak:,} MB."
    yield f"  - Expected: the tables in [{kept.scale}/README.md]({kept.scale}/README.md). That they follow from their records:"
    yield f"    `python -m dpvision verify docs/results/{kept.scale}`."
