"""Tables and figures, made again from the records and compared, up to what rounding on another machine may change."""

import csv
import io
import math
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpvision.files import digest, read_json
from dpvision.plan.plan import folder_of
from dpvision.plan.specs import Spec
from dpvision.reporting import tables
from dpvision.reporting.claims import write_claims
from dpvision.reporting.kinds import KINDS
from dpvision.verify.finding import ABSENT, Finding, equal
from dpvision.verify.place import Place


def artifact(place: Place, name: str) -> Iterator[Finding]:
    """Compare an artifact with itself made again: a figure's numbers that are drawn; without labels, a table's CSV alone."""
    spec = place.plan.artifacts[name]
    if place.archive:
        file = place.results / "plan" / f"{name}.json"
        found = digest(read_json(file)) if file.exists() else ABSENT
        yield from equal(place.name(file), "digest of the spec in plan.json", digest(spec), found)
    with TemporaryDirectory(prefix="dpvision-verify-") as folder:
        where = folder_of(spec)
        csv = Path(folder) / where / f"{name}.csv"
        csv.parent.mkdir(exist_ok=True)
        AGAIN[where](spec, place.plan.labels.get(name), place.plan.inputs_of(name), csv)
        for again in sorted(file for file in Path(folder).rglob("*") if file.is_file()):
            yield from _same(place, again, place.results / again.relative_to(folder))
    for target in map(Path, place.plan.targets(name)):
        if not target.exists():
            yield Finding(place.name(target), "file missing", "part of the artifact", ABSENT)


DRAWINGS = ("svg", "pdf", "png")


def _table(spec: Spec, labels: dict[str, Any] | None, inputs: dict[str, list[str]], csv: Path) -> None:
    tables.write_table(spec, labels or {"title": "", "paper": "", "models": {}}, inputs, csv)
    if labels is None:
        csv.with_suffix(".md").unlink()
        csv.with_suffix(".tex").unlink()


def _figure(spec: Spec, labels: dict[str, Any] | None, inputs: dict[str, list[str]], csv: Path) -> None:
    KINDS[spec["kind"]].read(spec, inputs).to_csv(csv, index=False)


def _claims(spec: Spec, labels: dict[str, Any] | None, inputs: dict[str, list[str]], csv: Path) -> None:
    if labels is None:
        return
    there = {what: [file for file in files if Path(file).exists()] for what, files in inputs.items()}
    figure = csv.parent / "figures" / csv.name
    write_claims(spec, labels, there, csv, figure)
    for drawn in DRAWINGS:
        figure.with_suffix(f".{drawn}").unlink()


ROUNDING = 1e-9  # relative: what processors and numbers of threads may do to a number

AGAIN = {"tables": _table, "figures": _figure, "": _claims}
"""Functions that make a folder's artifacts again, without what cannot be compared: drawings depend on fonts."""


def _same(place: Place, again: Path, there: Path) -> Iterator[Finding]:
    if not there.exists() or again.read_bytes() == there.read_bytes():
        return  # a missing file is found with the targets
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in (again, there)]
    differences = cells(*texts) if again.suffix == ".csv" else lines(*texts)
    for where, expected, found in differences or [("its bytes", "those of the records", "others")]:
        if not _rounded(expected, found):
            yield Finding(place.name(there), f"{where}, from the records", expected, found)


def _rounded(one: str, other: str) -> bool:
    """Tell whether two texts are the same number but for its last digits: an ε of a convolution has others elsewhere."""
    try:
        return math.isclose(float(one), float(other), rel_tol=ROUNDING)
    except ValueError:
        return False


def cells(expected: str, found: str) -> list[tuple[str, Any, Any]]:
    """Return the rows and columns in which two CSVs differ."""
    first, second = (list(csv.reader(io.StringIO(text))) for text in (expected, found))
    header, columns = first[0], second[0] if second else []
    if header != columns:
        return [("the columns", ", ".join(header), ", ".join(columns))]
    differences = []
    for number, (one, other) in enumerate(zip_longest(first[1:], second[1:]), 1):
        if one is None or other is None:
            differences.append((f"row {number}", _row(one), _row(other)))
            continue
        about = " ".join(
            value for name, value in zip(header, one, strict=False) if name in ("dataset", "model", "epsilon", "metric")
        )
        pairs = zip_longest(header, one, other, fillvalue=ABSENT)
        differences += [(f"row {number} ({about}), {name}", a, b) for name, a, b in pairs if a != b]
    return differences


def _row(row: list[str] | None) -> str:
    return ABSENT if row is None else ",".join(row)


def lines(expected: str, found: str) -> list[tuple[str, Any, Any]]:
    pairs = zip_longest(expected.splitlines(), found.splitlines(), fillvalue=ABSENT)
    return [(f"line {number}", one, other) for number, (one, other) in enumerate(pairs, 1) if one != other]
