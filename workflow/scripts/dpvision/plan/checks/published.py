"""Check the numbers that a paper printed, each beside the cells it is of."""

from collections.abc import Iterator

from dpvision.config.metrics import measured
from dpvision.config.papers import Paper
from dpvision.config.published import Published
from dpvision.plan.expand import Cell, named, shown
from dpvision.plan.reading import Documents, complaint, unknown
from dpvision.reporting.coordinates import telling


def of_published(rows: list[Published], artifacts: list[str], documents: Documents) -> Iterator[str]:
    first: dict[tuple, int] = {}
    for i, row in enumerate(rows):
        if row.artifact not in artifacts:
            yield unknown(documents, (i, "artifact"), "artifact", row.artifact, artifacts, row.artifact)
        of = [row.metric, *filter(None, (row.weights, row.split))]
        key = (row.artifact, *row.coordinates().items(), *of)
        if first.setdefault(key, i) != i:
            values = [row.artifact, *row.coordinates().values(), *of]
            yield complaint(documents, (i,), f"the same as entry {first[key] + 1}: {', '.join(map(str, values))}; keep one")


def of_rows(rows: list[Published], paper: Paper, cells: list[Cell], documents: Documents) -> Iterator[str]:
    """Yield a line for a number that is of two cells of an artifact, or a cell that has two numbers.

    A number that says no protocol is of both: it stands beside ours and beside what the authors' code reaches.
    """
    for name, artifact in paper.artifacts.items():
        there = shown(paper, cells, name)
        by_protocol = [[cell.at for cell in there if cell.at["protocol"] == protocol] for protocol in ("clean", "paper")]
        told_apart = list(dict.fromkeys(key for ats in by_protocol for key in telling(ats)))
        first: dict[tuple, int] = {}
        for i, row in enumerate(rows):
            if not hasattr(artifact, "published") or row.artifact != (artifact.published or name):
                continue
            said = row.coordinates()
            ats = [cell.at for cell in there if said.items() <= cell.at.items()]
            found = [(named({key: at.get(key) for key in told_apart}), at["protocol"]) for at in ats]
            places = list(dict.fromkeys(place for place, _ in found))
            if len(places) > 1:
                two = f"is of two cells of {name}: {places[0]}; and {places[1]}. Say more of its coordinates"
                yield complaint(documents, (i,), two)
            for place, protocol in found:
                of = (place, *measured(protocol, row.metric, row.weights, row.split))
                if first.setdefault(of, i) != i:
                    both = f"entry {first[of] + 1} is of the same cell of {name}: {place}; keep one"
                    yield complaint(documents, (i,), both)
