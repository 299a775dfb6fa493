"""Claims: a verdict on each sentence of a paper from the records that there are, as CSV, a page and a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpvision.files import write_csv, write_text
from dpvision.plan.specs import Spec
from dpvision.reporting.comparisons import COMPARISONS
from dpvision.reporting.coordinates import ALWAYS, cell_name, telling
from dpvision.reporting.forest import IN_PRINT, Row, write_forest
from dpvision.reporting.left_out import exclusion_notes, read_trainings
from dpvision.reporting.measures import Named, text_of, work_of
from dpvision.reporting.power import MOST, chosen_in_words, distance, seeds_for, spread_of, with_power
from dpvision.reporting.records import Records
from dpvision.reporting.verdicts import NOT_HERE, RULES, VERDICTS, Estimate, combined, estimate, of_line, verdict
from dpvision.reporting.words import simulation

MARKS = dict(zip(VERDICTS, ("✔", "✘", "?", "–", "–"), strict=True))
NUMBERS = ["comparison", "kind", "dataset", "epsilon", "n", "effect", "low", "high", "unit", "of_medians", "published"]
NUMBERS += ["source", "seeds_to_decide", "seeds_for_print"]
NUMBERS += ["above", "below", "about", "by_seed", "stand_ins"]
TALLIED = {NOT_HERE: "without verdict (stand-ins)"}
STAND_INS = (
    "{count} of {total} sentences have no verdict: in the place of the paper's data or networks this scale has stand-ins, and "
    "what these do decides nothing about the paper."
)
PROTECTS = """\
The most that an attacker can tell from one training, by the whole privacy curve of the one that spent most; in a simulation, of
the training that is simulated."""
INTRODUCTION = """\
What the paper says, and whether the runs that there are bear it out. An effect is the first-named model's, in the unit that
stands with it (points: percentage points of accuracy); *in print*: the same effect by the paper's own numbers. What no paper
prints, and its authors have elsewhere, says where. A sentence is the paper's own, word for word, unless it says that it is in
ours."""


class Outcome(NamedTuple):
    """The outcome of a comparison."""

    comparison: Spec
    values: dict[str, float]
    """The effect by seed, or by the seeds of a group."""
    found: Estimate | None
    of_medians: float | None
    """The paper's statistic."""
    published: float | None
    verdict: str
    seeds: int | None
    """How many would decide an effect as the one seen; none: nothing is known of the spread, or more than anybody trains."""
    seeds_for_print: int | None
    """How many would decide an effect as that in print."""
    together: str
    """The verdict with an interval that holds for all comparisons of the claim together."""

    @property
    def unit(self) -> str:
        unit = COMPARISONS[self.comparison["kind"]].UNIT
        named: str = unit if isinstance(unit, str) else unit[self.comparison["unit"]]
        return named

    @property
    def claimed(self) -> dict[str, Any]:
        return claimed_of(self.comparison)

    @property
    def printed_in(self) -> str:
        """Say where the effect that is not ours stands: in print, or where else its authors have its numbers."""
        return f"in {self.comparison['source']}" if "source" in self.comparison else IN_PRINT

    @property
    def stand_ins(self) -> str:
        """Say what the scale has in the place of what; nothing where all is the paper's own."""
        return stand_ins(self.comparison)


def compared(comparison: Spec, records: Records, among: int = 1) -> Outcome:
    """Measure a comparison and judge it; `among` so many comparisons of a claim."""
    kind = COMPARISONS[comparison["kind"]]
    seen = kind.observed(comparison, records)

    def interval(together: int) -> Estimate | None:
        if seen.points:
            return of_line(seen.points, together)
        return estimate(list(seen.values.values()), kind.UNIT == "ratio", together)

    estimates = [interval(together) for together in (1, among)]
    claimed, published, logarithmic = claimed_of(comparison), _published(comparison), kind.UNIT == "ratio"
    verdicts = [verdict(one, claimed) for one in estimates]
    n, lost = (len(seen.points), 2) if seen.points else (len(seen.values), 1)
    spread = estimates[0] and spread_of(estimates[0], n, lost, logarithmic)
    needed: list[int | None] = []
    if spread and estimates[0] and "exactly" not in claimed:
        far = [distance(effect, claimed, logarithmic) for effect in (estimates[0].effect, published) if effect is not None]
        verdicts = [with_power(one, far, spread, together) for one, together in zip(verdicts, (1, among), strict=True)]
        needed = [seeds_for(one / spread.of_one, lost) for one in far]
    if stand_ins(comparison):
        verdicts = [NOT_HERE, NOT_HERE]
    seeds, for_print = [*needed, None, None][:2]
    return Outcome(
        comparison, seen.values, estimates[0], seen.of_medians, published, verdicts[0], seeds, for_print, verdicts[1]
    )


def claimed_of(comparison: Spec) -> dict[str, Any]:
    """Return where the effect lies if the sentence is true; a count is exact."""
    said: dict[str, Any] = comparison.get("claimed") or {"exactly": comparison["count"]}
    return said


def _published(comparison: Spec) -> float | None:
    """Return the effect in print: as it stands there, or of the sides' numbers."""
    said: float | None = comparison.get("published")
    numbers = comparison.get("printed", ())
    if said is None and numbers is not None:
        said = COMPARISONS[comparison["kind"]].in_print(comparison, *numbers)
    return said


def stand_ins(comparison: Spec) -> str:
    changed = [(side["at"].get("model"), *change) for side in comparison["sides"] for change in side.get("instead", {}).items()]
    said = [
        f"{'' if key == 'dataset' else f'{model}: '}{key.removeprefix('model.')} {_said(now)} for {_said(was)}"
        for model, key, (was, now) in changed
    ]
    return ", ".join(dict.fromkeys(said))


def _said(value: Any) -> str:
    return "none" if value is None else text_of(value)


# --- the page, its numbers, the figure ---


class Judged(NamedTuple):
    """A claim with what came of it."""

    claim: Spec
    outcomes: list[Outcome]

    @property
    def text(self) -> str:
        """Return the sentence, or what it says, marked as no quotation."""
        return f"{self.claim['text']} (in our words)" if self.claim.get("in_our_words") else str(self.claim["text"])

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
    records = Records(inputs)
    claims = judged(page, records)
    write_csv(csv_file, [row for claim in claims for row in _rows(claim, page, labels)])
    write_text(csv_file.with_suffix(".md"), _page(claims, page, labels, _privacy(page, records)))
    drawn = [
        Row(claim.claim["name"].replace("_", " "), described(outcome.comparison, labels, places_of(page)), outcome)
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
    about = {"paper": page["paper"], "claim": claim["name"], "section": claim["section"], "text": judged.text}
    about |= {"scale": page["scale"], "simulated": bool(simulation(page))}
    places = places_of(page)
    rows = [{"row": "claim", **about, "verdict": judged.verdict, **_numbers(alone, labels, places)}]
    for outcome in judged.outcomes:
        rows.append({"row": "comparison", **about, "verdict": outcome.verdict, **_numbers(outcome, labels, places)})
    return rows


def _numbers(outcome: Outcome | None, labels: dict[str, Any], places: list[dict[str, Any]]) -> dict[str, Any]:
    """Empty for a claim of several comparisons."""
    if outcome is None:
        return dict.fromkeys(NUMBERS)
    comparison, claimed = outcome.comparison, outcome.claimed
    at = comparison["sides"][0]["at"]
    values = [
        described(comparison, labels, places),
        *(comparison["kind"], at["dataset"], at.get("epsilon"), len(outcome.values)),
        *(outcome.found or (None, None, None)),
        *(outcome.unit, outcome.of_medians, outcome.published, comparison.get("source")),
        *(outcome.seeds, outcome.seeds_for_print),
        *(claimed.get("above"), claimed.get("below"), " to ".join(map(str, claimed.get("about") or []))),
        "; ".join(f"{seed}: {value:.6g}" for seed, value in outcome.values.items()),
        outcome.stand_ins,
    ]
    return dict(zip(NUMBERS, values, strict=True))


def places_of(page: Spec) -> list[dict[str, Any]]:
    """Return the coordinates of all sides that a page is about."""
    return [side["at"] for claim in page["claims"] for one in claim["comparisons"] for side in one["sides"]]


def described(comparison: Spec, labels: dict[str, Any], places: list[dict[str, Any]] | None = None) -> str:
    """Say what is compared, and where: largest eigenvalue, ScaleResNet-9 / ResNet-9: CIFAR-10, ε = 7.42.

    `places`: the coordinates of all cells that it is to be told from; its own sides are, where there are none.
    """
    sides, own = comparison["sides"], [side["at"] for side in comparison["sides"]]
    others = own if places is None else places
    apart = (name for side in sides if not _by_canaries(side) for name in _apart(side["at"], others))
    names = list(dict.fromkeys([*ALWAYS[::2], *apart]))
    shared = [name for name in names if all(name in at and at[name] == own[0].get(name) for at in own)]
    if any("attacked" in side for side in sides):  # what they share is not all the cell's
        shared = []
    names = [name for name in names if name not in shared]
    models = ["canaries" if _by_canaries(side) else labels["models"][side["at"]["model"]] for side in sides]
    datasets = labels.get("datasets", {})
    shown = [side | {"at": _with_label(side["at"], datasets)} for side in sides]
    named = Named(models, [_cell(side, names) for side in shown], cell_name(_with_label(own[0], datasets), shared))
    text: str = COMPARISONS[comparison["kind"]].described(comparison, named)
    return text


def _with_label(at: dict[str, Any], datasets: dict[str, str]) -> dict[str, Any]:
    """Return coordinates with the data set by the name that people use."""
    return at | {"dataset": datasets.get(at["dataset"], at["dataset"])}


def _by_canaries(side: Spec) -> bool:
    """Tell whether a side is an attack by canaries, for which nothing is trained."""
    return bool(side.get("attacked", {}).get("by") == "canaries")


def _cell(side: Spec, names: Sequence[str]) -> str:
    """Call the cell of a side by some of its coordinates; canaries know no data set and no recipe, but q and steps."""
    if "attacked" not in side:
        return cell_name(side["at"], names)
    of = side["attacked"]
    examples = f"{of['examples']:,} examples"
    if _by_canaries(side):
        return f"{cell_name(side['at'], ['epsilon'])}, q = {of['q']:.4g}, {of['steps']} steps, {examples}"
    return f"{cell_name(side['at'], names)}, {examples}"


def _apart(at: dict[str, Any], places: list[dict[str, Any]]) -> list[str]:
    """Return the coordinates that tell a cell from others of its data set, model and ε."""
    alike = [place for place in places if all(place.get(key) == at.get(key) for key in ALWAYS)]
    return [name for name in telling(alike) if name not in ALWAYS]


def _privacy(page: Spec, records: Records) -> list[str]:
    """Say what the ε of the page mean to an attacker, of the training that spent most, and what they leave out.

    Ledgers of old do not say what ε means to an attacker.
    """
    most: dict[str, list[float]] = {}
    for cell in page["cells"]:
        for run in cell["work"].get("train", {}).values():
            ledger = records.json("ledger.json", run) or {}
            of = ledger.get("simulated", ledger)
            if "curve" in of:
                found = [of["epsilon"]["pld"], *(of["curve"][name] for name in ("mu", "true_positives", "advantage"))]
                so_far = most.setdefault(cell_name(cell["at"], ALWAYS[::2]), found)
                most[cell_name(cell["at"], ALWAYS[::2])] = list(map(max, so_far, found))
    notes = exclusion_notes(read_trainings(page["cells"], {"records": list(map(str, records.files.values()))}))
    left_out = ["", "## What these ε leave out", "", *(f"- {note}" for note in notes)] if notes else []
    if not most:
        return left_out
    head = ["where", "ε by PLD", "μ", "true positives at 0.1 % false ones", "advantage"]
    rows = [[where, f"{e:.2f}", f"{mu:.2f}", f"{tpr:.1%}", f"{gain:.1%}"] for where, (e, mu, tpr, gain) in most.items()]
    return ["", "## What these ε protect from", "", PROTECTS, "", *_table([head, *rows]), *left_out]


def _page(claims: list[Judged], page: Spec, labels: dict[str, Any], privacy: list[str]) -> str:
    lines = ["# Claims", "", INTRODUCTION, ""]
    if page["scale"] != "paper":
        lines += [f"**Scale {page['scale']}, not the paper's: {labels['scale']}.**", ""]
    if how := simulation(page):
        lines += [f"**{how.capitalize()}.**", ""]
    lines += [
        " ".join([tally([claim.verdict for claim in claims]) + ".", *stand_ins_note(claims)]),
        "",
        f"![Effects, intervals, and the effects in print](figures/{page['artifact']}.svg)",
    ]
    lines += ["", f"## {labels['paper']}", "", *_summary(claims)]
    for claim in claims:
        lines += ["", *_details(claim, labels, places_of(page))]
    return "\n".join([*lines, *privacy, "", "## How it is judged", "", RULES, *_chosen(claims), ""])


def _chosen(claims: list[Judged]) -> list[str]:
    """Say what verdicts would be worth had their seeds been chosen, for each n that there is."""
    counts = {len(outcome.values) for claim in claims for outcome in claim.outcomes if outcome.seeds is not None}
    said = chosen_in_words(counts)
    return [said] if said else []


def tally(verdicts: list[str]) -> str:
    return ", ".join(f"{verdicts.count(one)} {TALLIED.get(one, one)}" for one in VERDICTS if one in verdicts)


def stand_ins_note(claims: list[Judged]) -> list[str]:
    """Say in a sentence why sentences of the paper have no verdict at a scale with stand-ins, if any has none for that."""
    count = [claim.verdict for claim in claims].count(NOT_HERE)
    return [STAND_INS.format(count=count, total=len(claims))] if count else []


def _summary(claims: list[Judged]) -> list[str]:
    rows = [["claim", "section", "verdict", "n", "seeds to decide", "effect and 95 % interval", IN_PRINT, "where"]]
    for claim in claims:
        about, outcomes = claim.claim, claim.outcomes
        if len(outcomes) == 1:
            (outcome,) = outcomes
            numbers = [_count(outcome), _seeds(outcome), _effect(outcome), _in_print(outcome)]
            numbers.append(", ".join(dict.fromkeys(cell_name(side["at"]) for side in outcome.comparison["sides"])))
        else:
            counts = sorted({len(outcome.values) for outcome in outcomes})
            numbers = [" to ".join(map(str, counts[:1] + counts[-1:] * (len(counts) > 1)))]
            numbers += [
                _most_seeds(outcomes),
                tally([outcome.verdict for outcome in outcomes]),
                "",
                f"{len(outcomes)} comparisons",
            ]
        link = f"[{claim.text}](#{about['name']})"
        rows.append([link, about["section"], f"{MARKS[claim.verdict]} {claim.verdict}", *numbers])
    return _table(rows)


def _details(judged: Judged, labels: dict[str, Any], places: list[dict[str, Any]]) -> list[str]:
    claim = judged.claim
    decided = f" Decided by {', '.join(claim['artifacts'])}." if claim["artifacts"] else ""
    lines = [
        f'<a id="{claim["name"]}"></a>',
        "",
        f"### {MARKS[judged.verdict]} {claim['name'].replace('_', ' ')}: {judged.verdict}",
        "",
    ]
    lines += [judged.text if claim.get("in_our_words") else f"> {judged.text}", "", f"Section {claim['section']}.{decided}"]
    if claim["reading"]:
        lines += ["", f"*How it is measured:* {claim['reading']}"]
    seeds = list(dict.fromkeys(seed for outcome in judged.outcomes for seed in outcome.values))
    rows = [
        [
            "comparison",
            "claimed",
            "verdict",
            "n",
            "seeds to decide",
            "effect and 95 % interval",
            "of medians",
            IN_PRINT,
            *(f"seed {s}" for s in seeds),
        ]
    ]
    for outcome in judged.outcomes:
        numbers = [_number(outcome.of_medians, outcome.unit), _in_print(outcome)]
        by_seed = [_number(outcome.values.get(seed), outcome.unit) for seed in seeds]
        verdict_ = f"{MARKS[outcome.verdict]} {outcome.verdict}"
        what = described(outcome.comparison, labels, places)
        rows.append(
            [what, _claimed(outcome.claimed), verdict_, _count(outcome), _seeds(outcome), _effect(outcome), *numbers, *by_seed]
        )
    replaced = "; ".join(dict.fromkeys(filter(None, (outcome.stand_ins for outcome in judged.outcomes))))
    marked = [f"*Stand-ins, which decide nothing:* {replaced}.", ""] if replaced else []
    return [*lines, "", *marked, *_table(rows)]


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = ["| " + " | ".join(cell or "–" for cell in row) + " |" for row in rows]
    return [head, "|" + " --- |" * len(rows[0]), *body]


def _count(outcome: Outcome) -> str:
    """Say how many there are, and of how many, where some are missing."""
    there = len(outcome.values)
    possible = len(work_of(outcome.comparison, 0)) // outcome.comparison.get("seeds", 1)
    return str(there) if there == possible else f"{there} of {possible}"


def _seeds(outcome: Outcome) -> str:
    """Say how many would decide it, if the effect is as seen, and as in print."""
    if outcome.found is None or outcome.found.low is None:
        return ""
    for_print = "" if outcome.published is None else f" / {_or_more(outcome.seeds_for_print)}"
    return _or_more(outcome.seeds) + for_print


def _most_seeds(outcomes: list[Outcome]) -> str:
    """Say how many would decide all comparisons that there are, if the effects are as seen."""
    there = [outcome.seeds for outcome in outcomes if outcome.found and outcome.found.low is not None]
    known = [seeds for seeds in there if seeds is not None]
    return "" if not there else _or_more(max(known) if len(known) == len(there) else None)


def _or_more(seeds: int | None) -> str:
    return f"over {MOST:,}" if seeds is None else f"{seeds:,}"


def _claimed(claimed: dict[str, Any]) -> str:
    if "exactly" in claimed:
        return f"= {claimed['exactly']}"
    sides = [f"> {claimed['above']:g}"] if claimed["above"] is not None else []
    sides += [f"< {claimed['below']:g}"] if claimed["below"] is not None else []
    sides += ["about {:g} to {:g}".format(*claimed["about"])] if claimed["about"] else []
    return ", ".join(sides)


def _effect(outcome: Outcome) -> str:
    if outcome.found is None:
        return ""
    of_others = "stand-ins: " if outcome.stand_ins else ""
    return of_others + in_words(*outcome.found, outcome.unit)


def _in_print(outcome: Outcome) -> str:
    """Return the effect in print; one that stands elsewhere says where."""
    where = "" if outcome.published is None or outcome.printed_in == IN_PRINT else f" {outcome.printed_in}"
    return _number(outcome.published, outcome.unit) + where


def in_words(effect: float, low: float | None, high: float | None, unit: str) -> str:
    """Return an effect with its unit and its interval."""
    name = {"points": " points", "epochs": " epochs", "ε": " ε"}.get(unit, "")
    ends = "" if low is None else f" [{_number(low, unit)}, {_number(high, unit)}]"
    return f"{_number(effect, unit)}{name}{ends}"


def _number(value: float | None, unit: str) -> str:
    """Return a number with the sign of a difference, and a factor as one."""
    if value is None:
        return ""
    if unit == "parameters":
        return f"{value:.0f}"
    if unit == "ratio":
        return f"×{value:.3g}"
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
