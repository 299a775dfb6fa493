"""Claims: a verdict on each sentence of a paper from the records that there are, as CSV, a page and a figure."""

import csv
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from dpvision.files import read_json, write_csv, write_text
from dpvision.plan.specs import Spec
from dpvision.reporting.coordinates import cell_name, telling
from dpvision.reporting.forest import write_forest
from dpvision.reporting.verdicts import CONTRADICTED, NOT_RUN, RULES, SUPPORTED, VERDICTS, Estimate, combined, estimate, verdict
from dpvision.reporting.words import simulation

MARKS = dict(zip(VERDICTS, ("✔", "✘", "?", "–"), strict=True))
NUMBERS = ["comparison", "kind", "dataset", "epsilon", "n", "effect", "low", "high", "unit", "of_medians", "published"]
NUMBERS += ["above", "below", "about", "by_seed"]
INTRODUCTION = """\
What the paper says, and whether the runs that there are bear it out. An effect is the first-named model's, in the unit that
stands with it (points: percentage points of accuracy); *in print*: the same effect by the paper's own numbers."""


class Records:
    """The files of runs and analyses that there are, by what they are and by folder."""

    def __init__(self, inputs: dict[str, list[str]]) -> None:
        self.files = {(Path(file).name, Path(file).parent.name): Path(file) for files in inputs.values() for file in files}
        self.read: dict[Path, Any] = {}

    def json(self, name: str, folder: str) -> Any:
        return self._cached(name, folder, read_json)

    def rows(self, name: str, folder: str) -> list[dict[str, str]] | None:
        return self._cached(name, folder, _csv_rows)

    def parameters(self, folder: str) -> int | None:
        return self._cached("weights.safetensors", folder, _parameter_count)

    def _cached(self, name: str, folder: str, read: Callable[[Path], Any]) -> Any:
        file = self.files.get((name, folder))
        if file is None:
            return None
        if file not in self.read:
            self.read[file] = read(file)
        return self.read[file]


def _csv_rows(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _parameter_count(file: Path) -> int:
    """Of a trained network's weights, without the statistics that batch normalisation keeps. The file's head is JSON."""
    with open(file, "rb") as weights:
        head = json.loads(weights.read(int.from_bytes(weights.read(8), "little")))
    kept = ("running_mean", "running_var", "num_batches_tracked", "__metadata__")
    return sum(math.prod(entry["shape"]) for name, entry in head.items() if not name.endswith(kept))


# --- what a run's record says: a number, or none where there is no such record or no finite number in it ---

Measure = Callable[[Records, Spec, int, str], float | None]  # of a comparison's side, with a seed


def work_of(comparison: Spec, side: int) -> dict[str, str]:
    """Return by seed the work that is read of a side."""
    stage = comparison["reads"].split("/")[0]
    return comparison["sides"][side]["work"].get(stage, {})


def accuracy(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return that of the last step; of the averaged weights, where the recipe averages."""
    metrics = records.json("metrics.json", work_of(comparison, side)[seed])
    if metrics is None:
        return None
    return 100 * metrics.get("averaged", metrics["last_step"])["test"][comparison["metric"]]


def curvature(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    found = records.json("hessian.json", work_of(comparison, side)[seed])
    value = found and found[comparison["quantity"]]
    return value if value is not None and value > 0 else None  # a ratio of others says nothing


def seconds(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return those of all sessions of a training that was interrupted."""
    made = records.json("provenance.json", work_of(comparison, side)[seed])
    return made and sum(session["seconds"] for session in made["sessions"])


def reached(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    """Return when this side first had what both end with at least: another goal than a common one would favour one of them."""
    found = [records.rows("history.csv", work_of(comparison, i)[seed]) for i in range(len(comparison["sides"]))]
    both = [rows for rows in found if rows is not None]
    if len(both) < len(found):
        return None
    goal = min(float(rows[-1]["test_top1"]) for rows in both)
    there = next(row for row in both[side] if float(row["test_top1"]) >= goal)
    unit: str = comparison["unit"]
    return float(there[f"simulated_{unit}" if f"simulated_{unit}" in there else unit])


def moment(records: Records, comparison: Spec, side: int, seed: str) -> float | None:
    rows = records.rows("histograms.csv", work_of(comparison, side)[seed])
    if rows is None:
        return None
    bars = [
        {key: float(row[key]) for key in row if key != "place"} for row in rows if row["place"] == comparison["places"][side]
    ]
    return _MOMENTS[comparison["moment"]](bars)


def _skewness(bars: list[dict[str, float]]) -> float:
    """As if all of a bar lay in its middle."""
    shares = [bar["density"] * (bar["right"] - bar["left"]) for bar in bars]
    middles = [(bar["left"] + bar["right"]) / 2 for bar in bars]
    mean = sum(p * x for p, x in zip(shares, middles, strict=True)) / sum(shares)
    second, third = (sum(p * (x - mean) ** k for p, x in zip(shares, middles, strict=True)) / sum(shares) for k in (2, 3))
    return third / second**1.5


def _positive(bars: list[dict[str, float]]) -> float:
    """The share above zero, of the bar that zero lies in as well."""
    everything = sum(bar["density"] * (bar["right"] - bar["left"]) for bar in bars)
    return sum(bar["density"] * max(0.0, bar["right"] - max(0.0, bar["left"])) for bar in bars) / everything


_MOMENTS: dict[str, Callable[[list[dict[str, float]]], float]] = {
    "mean": lambda bars: bars[0]["mean"],
    "std": lambda bars: bars[0]["std"],
    "positive": _positive,
    "skewness": _skewness,
    "asymmetry": lambda bars: abs(_skewness(bars)),
}


def _less(comparison: Spec, first: float, *others: float) -> float:
    return first - sum(others)


def _ratio(comparison: Spec, first: float, second: float) -> float:
    return first / second


class Kind(NamedTuple):
    """What is read of each side, and what is made of the sides: of a seed's, of their medians, of the numbers in print."""

    measure: Measure
    effect: Callable[..., float]
    unit: str


KINDS: dict[str, Kind] = {
    "difference": Kind(accuracy, _less, "points"),
    "interaction": Kind(accuracy, lambda comparison, a, b, c, d: (a - b) - (c - d), "points"),
    "best_of": Kind(accuracy, _less, "points"),
    "level": Kind(accuracy, lambda comparison, value: value - comparison["than"], "points"),
    "curvature": Kind(curvature, _ratio, "ratio"),
    "moment": Kind(moment, _less, "activation"),
    "times": Kind(seconds, _ratio, "ratio"),
    "reach": Kind(reached, _less, "epochs"),
}


class Outcome(NamedTuple):
    """What came of a comparison."""

    comparison: Spec
    values: dict[str, float]
    """The effect by seed, or by the seeds of a group."""
    found: Estimate | None
    of_medians: float | None
    """The paper's statistic."""
    published: float | None
    verdict: str
    together: str
    """The verdict with an interval that holds for all comparisons of the claim together."""

    @property
    def unit(self) -> str:
        if self.comparison["kind"] == "parameters":
            return "parameters"
        return "ε" if self.comparison.get("unit") == "epsilon" else KINDS[self.comparison["kind"]].unit


def compared(comparison: Spec, records: Records, among: int = 1) -> Outcome:
    """`among` so many comparisons of a claim."""
    if comparison["kind"] == "parameters":
        return _counted(comparison, records)
    kind, sides = KINDS[comparison["kind"]], comparison["sides"]
    there = [work_of(comparison, i) for i in range(len(sides))]
    seeds = [seed for seed in there[0] if all(seed in work for work in there)]
    measured = {seed: [kind.measure(records, comparison, i, seed) for i in range(len(sides))] for seed in seeds}
    whole = {seed: [value for value in values if value is not None] for seed, values in measured.items() if None not in values}
    if comparison["kind"] == "best_of":
        values, of_medians = _best_of(comparison, whole), None
    else:
        values = {seed: kind.effect(comparison, *of_sides) for seed, of_sides in whole.items()}
        medians = [statistics.median(column) for column in zip(*whole.values(), strict=True)]
        of_medians = kind.effect(comparison, *medians) if medians else None
    found, wider = (estimate(list(values.values()), kind.unit == "ratio", many) for many in (1, among))
    verdicts = [verdict(interval, comparison["claimed"]) for interval in (found, wider)]
    return Outcome(comparison, values, found, of_medians, _published(comparison), *verdicts)


def _best_of(comparison: Spec, whole: dict[str, list[float]]) -> dict[str, float]:
    """By group of seeds, in their order; those that are left over are in none."""
    size, seeds = comparison["seeds"], list(whole)
    groups = [seeds[start : start + size] for start in range(0, len(seeds) - size + 1, size)]
    values = {}
    for group in groups:
        first, second = zip(*(whole[seed] for seed in group), strict=True)
        apart = max(first) - max(second) - (statistics.median(first) - statistics.median(second))
        values[" ".join(group)] = apart
    return values


def _published(comparison: Spec) -> float | None:
    """The effect in print: as it stands there, or of the sides' numbers."""
    printed = comparison["printed"]
    if comparison["published"] is not None or printed is None:
        return comparison["published"]
    if comparison["kind"] == "best_of":
        first, second, *medians = printed
        return first - second - (medians[0] - medians[1])
    return KINDS[comparison["kind"]].effect(comparison, *printed)


def _counted(comparison: Spec, records: Records) -> Outcome:
    counts = {seed: records.parameters(run) for seed, run in work_of(comparison, 0).items()}
    values = {seed: float(count) for seed, count in counts.items() if count is not None}
    said = comparison["count"]
    if not values:
        return Outcome(comparison, {}, None, None, said, NOT_RUN, NOT_RUN)
    count = next(iter(values.values()))
    exact = SUPPORTED if count == said else CONTRADICTED
    return Outcome(comparison, values, Estimate(count, None, None), None, said, exact, exact)


# --- the page, its numbers, the figure ---


class Judged(NamedTuple):
    """A claim with what came of it."""

    claim: Spec
    outcomes: list[Outcome]

    @property
    def verdict(self) -> str:
        verdicts, together = zip(*((outcome.verdict, outcome.together) for outcome in self.outcomes), strict=True)
        return combined(verdicts, together, self.claim["combined"])


def judged(page: Spec, records: Records) -> list[Judged]:
    return [
        Judged(claim, [compared(one, records, len(claim["comparisons"])) for one in claim["comparisons"]])
        for claim in page["claims"]
    ]


def write_claims(
    page: Spec, labels: dict[str, Any], inputs: dict[str, list[str]], csv_file: Path, figure: Path
) -> list[Judged]:
    """Write a page of claims. `inputs`: the files that there are; what is missing is not run. `figure`: its CSV."""
    claims = judged(page, Records(inputs))
    write_csv(csv_file, [row for claim in claims for row in _rows(claim, page, labels)])
    write_text(csv_file.with_suffix(".md"), _page(claims, page, labels))
    drawn = [
        (described(outcome.comparison, labels), outcome)
        for claim in claims
        for outcome in claim.outcomes
        if outcome.unit != "parameters"
    ]
    write_forest(drawn, f"{labels['title']}: {labels['paper']}{_scale(page)}", figure)
    return claims


def _scale(page: Spec) -> str:
    how = simulation(page)
    return "" if page["scale"] == "paper" else f"  (scale {page['scale']}{': ' + how if how else ''})"


def _rows(judged: Judged, page: Spec, labels: dict[str, Any]) -> list[dict[str, Any]]:
    """The claim's own, and one for each of its comparisons."""
    claim, alone = judged.claim, judged.outcomes[0] if len(judged.outcomes) == 1 else None
    about = {"paper": page["paper"], "claim": claim["name"], "section": claim["section"], "text": claim["text"]}
    about |= {"scale": page["scale"], "simulated": bool(simulation(page))}
    rows = [{"row": "claim", **about, "verdict": judged.verdict, **_numbers(alone, labels)}]
    for outcome in judged.outcomes:
        rows.append({"row": "comparison", **about, "verdict": outcome.verdict, **_numbers(outcome, labels)})
    return rows


def _numbers(outcome: Outcome | None, labels: dict[str, Any]) -> dict[str, Any]:
    """Empty for a claim of several comparisons."""
    if outcome is None:
        return dict.fromkeys(NUMBERS)
    comparison, found = outcome.comparison, outcome.found
    at, claimed = comparison["sides"][0]["at"], comparison.get("claimed", {})
    values = [
        described(comparison, labels),
        *(comparison["kind"], at["dataset"], at.get("epsilon"), len(outcome.values)),
        *(found or (None, None, None)),
        *(outcome.unit, outcome.of_medians, outcome.published),
        *(claimed.get("above"), claimed.get("below"), " to ".join(map(str, claimed.get("about") or []))),
        "; ".join(f"{seed}: {value:.6g}" for seed, value in outcome.values.items()),
    ]
    return dict(zip(NUMBERS, values, strict=True))


def described(comparison: Spec, labels: dict[str, Any]) -> str:
    """Say what is compared, and where: trace, ScaleResNet-9 / ResNet-9: cifar10, ε = 7.42."""
    sides = comparison["sides"]
    names = [labels["models"][side["at"]["model"]] for side in sides]
    apart = [name for name in telling([side["at"] for side in sides]) if name not in ("dataset", "model", "epsilon")]
    cells = [cell_name(side["at"], ("dataset", "epsilon", *apart)) for side in sides]
    one_cell = len(set(cells)) == 1
    shown = names if one_cell else [f"{name} ({cell})" for name, cell in zip(names, cells, strict=True)]
    where = f": {cells[0]}" if one_cell else ""
    match comparison["kind"]:
        case "difference":
            return f"{comparison['metric']}, {shown[0]} − {shown[1]}{where}"
        case "interaction":
            parts = [f"({names[i]} − {names[i + 1]}: {cells[i]})" for i in (0, 2)]
            return f"{comparison['metric']}, {' − '.join(parts)}"
        case "best_of":
            return f"{comparison['metric']}, best of {comparison['seeds']} against median, {shown[0]} − {shown[1]}{where}"
        case "level":
            return f"{comparison['metric']}, {shown[0]} − {comparison['than']:g} %{where}"
        case "curvature":
            return f"{comparison['quantity'].replace('_', ' ')}, {shown[0]} / {shown[1]}{where}"
        case "moment":
            places = [f"{place} of {name}" for place, name in zip(comparison["places"], shown, strict=True)]
            return f"{comparison['moment']}, {' − '.join(places)}{where}"
        case "times":
            return f"seconds, {shown[0]} / {shown[1]}{where}"
        case "reach":
            return f"{comparison['unit']} at the lower of both last accuracies, {shown[0]} − {shown[1]}{where}"
    return f"parameters, {shown[0]}{where}"


def _page(claims: list[Judged], page: Spec, labels: dict[str, Any]) -> str:
    lines = ["# Claims", "", INTRODUCTION, ""]
    if page["scale"] != "paper":
        lines += [f"**Scale {page['scale']}, not the paper's: {labels['scale']}.**", ""]
    if how := simulation(page):
        lines += [f"**{how.capitalize()}.**", ""]
    lines += [
        tally([claim.verdict for claim in claims]) + ".",
        "",
        f"![Effects, intervals, and the effects in print](figures/{page['artifact']}.svg)",
    ]
    lines += ["", f"## {labels['paper']}", "", *_summary(claims)]
    for claim in claims:
        lines += ["", *_details(claim, labels)]
    return "\n".join([*lines, "", "## How it is judged", "", RULES, ""])


def tally(verdicts: list[str]) -> str:
    return ", ".join(f"{verdicts.count(one)} {one}" for one in VERDICTS if one in verdicts)


def _summary(claims: list[Judged]) -> list[str]:
    rows = [["claim", "section", "verdict", "n", "effect and 95 % interval", "in print", "where"]]
    for claim in claims:
        about, outcomes = claim.claim, claim.outcomes
        if len(outcomes) == 1:
            (outcome,) = outcomes
            numbers = [_count(outcome), _effect(outcome), _number(outcome.published, outcome.unit)]
            numbers.append(", ".join(dict.fromkeys(cell_name(side["at"]) for side in outcome.comparison["sides"])))
        else:
            counts = sorted({len(outcome.values) for outcome in outcomes})
            numbers = [" to ".join(map(str, counts[:1] + counts[-1:] * (len(counts) > 1)))]
            numbers += [tally([outcome.verdict for outcome in outcomes]), "", f"{len(outcomes)} comparisons"]
        link = f"[{about['text']}](#{about['name']})"
        rows.append([link, about["section"], f"{MARKS[claim.verdict]} {claim.verdict}", *numbers])
    return _table(rows)


def _details(judged: Judged, labels: dict[str, Any]) -> list[str]:
    claim = judged.claim
    decided = f" Decided by {', '.join(claim['artifacts'])}." if claim["artifacts"] else ""
    lines = [
        f'<a id="{claim["name"]}"></a>',
        "",
        f"### {MARKS[judged.verdict]} {claim['name'].replace('_', ' ')}: {judged.verdict}",
        "",
    ]
    lines += [f"> {claim['text']}", "", f"Section {claim['section']}.{decided}"]
    if claim["reading"]:
        lines += ["", f"*How it is measured:* {claim['reading']}"]
    seeds = list(dict.fromkeys(seed for outcome in judged.outcomes for seed in outcome.values))
    rows = [
        [
            "comparison",
            "claimed",
            "verdict",
            "n",
            "effect and 95 % interval",
            "of medians",
            "in print",
            *(f"seed {s}" for s in seeds),
        ]
    ]
    for outcome in judged.outcomes:
        numbers = [_number(number, outcome.unit) for number in (outcome.of_medians, outcome.published)]
        by_seed = [_number(outcome.values.get(seed), outcome.unit) for seed in seeds]
        verdict_ = f"{MARKS[outcome.verdict]} {outcome.verdict}"
        what = described(outcome.comparison, labels)
        rows.append([what, _claimed(outcome.comparison), verdict_, _count(outcome), _effect(outcome), *numbers, *by_seed])
    return [*lines, "", *_table(rows)]


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = ["| " + " | ".join(cell or "–" for cell in row) + " |" for row in rows]
    return [head, "|" + " --- |" * len(rows[0]), *body]


def _count(outcome: Outcome) -> str:
    """Of how many, where some are missing."""
    there = len(outcome.values)
    possible = len(work_of(outcome.comparison, 0)) // outcome.comparison.get("seeds", 1)
    return str(there) if there == possible else f"{there} of {possible}"


def _claimed(comparison: Spec) -> str:
    if comparison["kind"] == "parameters":
        return f"= {comparison['count']}"
    claimed = comparison["claimed"]
    sides = [f"> {claimed['above']:g}"] if claimed["above"] is not None else []
    sides += [f"< {claimed['below']:g}"] if claimed["below"] is not None else []
    sides += ["about {:g} to {:g}".format(*claimed["about"])] if claimed["about"] else []
    return ", ".join(sides)


def _effect(outcome: Outcome) -> str:
    if outcome.found is None:
        return ""
    effect, low, high = outcome.found
    unit = {"points": " points", "epochs": " epochs", "ε": " ε"}.get(outcome.unit, "")
    ends = "" if low is None else f" [{_number(low, outcome.unit)}, {_number(high, outcome.unit)}]"
    return f"{_number(effect, outcome.unit)}{unit}{ends}"


def _number(value: float | None, unit: str) -> str:
    """With the sign of a difference, and a factor as one."""
    if value is None:
        return ""
    if unit == "parameters":
        return f"{value:.0f}"
    if unit == "ratio":
        return f"×{value:.3g}"
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
