"""The pages of the report: overview, tables, claims, a card a run, cost, environment; made of records alone."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from dpvision.data.prepared import content_digest
from dpvision.files import file_digest, read_json, write_text
from dpvision.logs import clock
from dpvision.looking import runs, show
from dpvision.looking.runs import Run
from dpvision.looking.text import counted
from dpvision.plan import Plan
from dpvision.plan.stages import STAGES
from dpvision.provenance import LOCK, departures
from dpvision.reporting import html
from dpvision.reporting.left_out import count_exclusions
from dpvision.reporting.outcome import home, outcome
from dpvision.source import ROOT
from dpvision.verify.place import Place
from dpvision.verify.runs import record
from dpvision.verify.verdict import careful

SHOWN = {"last_step": "last step", "best_epoch": "best epoch, by {chooser}", "averaged": "averaged weights"}


def write_pages(plan: Plan, root: Path, folder: Path) -> None:
    """Into `folder`; `root` has the results."""
    banner = scale_banner(plan)
    cards = [runs.read(root, plan.folder(key), plan) for key in plan.kept() if key[0] == "train"]
    results = root / plan.results
    place = Place(results, results, replace(plan, results=str(results), shared=str(root / plan.shared)))
    warnings = {run.name: doubts(run, plan, root) + broken(place, run.name) for run in cards} | doubts_of_others(plan, root)
    names = names_of_runs(plan)
    pages = {"overview": overview(plan, root, warnings, cards), "cost": cost(plan, root), "environment": environment(cards)}
    for name in plan.of_kind(""):
        drawing = f"figures/{name}.svg"
        text = (root / plan.results / f"{name}.md").read_text(encoding="utf-8").removeprefix("# Claims\n")
        drawn = (root / plan.results / drawing).read_text(encoding="utf-8")
        pages[name] = f"Claims: {plan.labels[name]['paper']}", html.markdown(text, {drawing: drawn})
    for name in plan.of_kind("tables"):
        pages[f"tables/{name}"] = plan.labels[name]["title"], table(root / plan.results / f"tables/{name}.csv")
    for run in cards:
        pages[f"runs/{run.name}"] = run.name, card(run, warnings[run.name], *names.get(run.name, ()))
    for name, (title, content) in pages.items():
        write_text(folder / f"{name}.html", html.page(title, banner, content))
    write_text(folder / "home.html", home(plan, root, _graph(plan)))


def scale_banner(plan: Plan) -> str:
    """Return the lines that a reader of these numbers must not overlook."""
    simulated = any(run["recipe"].get("simulate") for run in plan.runs.values())
    as_written = all(labels.get("as_written") for labels in plan.labels.values())
    scale = f"Scale {plan.scale}" if as_written else f"Scale {plan.scale}, not the paper's"
    said = [f"{scale}: {plan.title}."] if plan.scale != "paper" else []
    said += ["Simulated trainings are not private."] if simulated else []
    return " ".join([*said, *(["A selection: other artifacts were not built."] if plan.selection else [])])


def doubts(run: Run, plan: Plan, root: Path) -> list[str]:
    """Return what one should know of a run before trusting it: by its record, by the lock and by the data that are here."""
    made: dict[str, Any] = run.provenance or {}
    said = show.doubts(run)
    said += [text for text in departures(made, lock=file_digest(LOCK)[:12]) if text not in said]
    prepared = root / plan.data_of(("train", run.name)) / "dataset.json"
    if "data" in made and made["data"] != content_digest(read_json(prepared)):
        said.append("made with other data than what is prepared now")
    return said


def broken(place: Place, run: str) -> list[str]:
    """Return what of a run's record does not follow from the rest of it, as `python -m dpvision verify` finds it."""
    return [f"does not verify ({finding})" for finding in careful(run, lambda: record(place, ("train", run)))]


def names_of_runs(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return by run what artifacts call its network and its data set."""
    found: dict[str, tuple[str, str]] = {}
    for artifact, spec in plan.artifacts.items():
        models, datasets = plan.labels[artifact]["models"], plan.labels[artifact].get("datasets", {})
        for cell in spec.get("cells", []) if "claims" not in spec else []:
            called = models[cell["at"]["model"]], datasets.get(cell["at"]["dataset"], cell["at"]["dataset"])
            found |= {run: called for run in cell["work"].get("train", {}).values() if run not in found}
    return found


def doubts_of_others(plan: Plan, root: Path) -> dict[str, list[str]]:
    """Return the same of searches and analyses, by folder."""
    lock = file_digest(LOCK)[:12]
    others = [key for key in plan.kept() if key[0] != "train" and not STAGES[key[0]].shared]
    made = {
        f"{STAGES[stage].folder}/{name}": read_json(root / plan.folder((stage, name)) / "provenance.json")
        for stage, name in others
    }
    return {folder: departures(provenance, lock=lock) for folder, provenance in made.items()}


# --- a page each ---


def overview(plan: Plan, root: Path, warnings: dict[str, list[str]], cards: list[Run]) -> tuple[str, str]:
    parts = [outcome(plan, root), "<h2>Warnings</h2>", _warnings(warnings)]
    if left_out := count_exclusions([run.exclusions for run in cards if run.spec and run.spec["budget"]]):
        parts += ["<h2>What ε leaves out</h2>", html.items(left_out, "warning")]
    parts += ["<h2>What is shown</h2>", html.table(("artifact", "title", "rests on"), rows_shown(plan))]
    return "Overview", "\n".join([*parts, "<h2>What leads to what</h2>", _graph(plan)])


def rows_shown(plan: Plan) -> list[tuple[str, str, str]]:
    """Return the name of each artifact, its title, and what it rests on."""
    return [(name, plan.labels[name]["title"], _rests_on(plan, name)) for name in plan.artifacts]


def _rests_on(plan: Plan, artifact: str) -> str:
    counts = Counter(stage for stage, _ in plan.below(artifact) if not STAGES[stage].shared)
    if counts:
        return ", ".join(counted(*STAGES[stage].words, count) for stage, count in counts.items())
    return "nothing: a drawing" if artifact in plan.of_kind("figures") else "the configuration alone: nothing was trained"


def _warnings(warnings: dict[str, list[str]]) -> str:
    counts = Counter(text.split(" (")[0] for said in warnings.values() for text in said)
    if not counts:
        return (
            f'<p class="fine">None: all {len(warnings)} records, of trainings, searches and analyses, are of committed code, '
            "the present lock and data, and none was interrupted.</p>"
        )
    lines = [f"{count} of {len(warnings)} records: {text}" for text, count in counts.most_common()]
    concerned = html.items(f"`{record}`: {'; '.join(said)}" for record, said in warnings.items() if said)
    return html.items(lines, "warning") + html.folded("Which ones", concerned)


def _graph(plan: Plan) -> str:
    """Draw which stage leads to which, and to what is shown."""
    kept = plan.kept()
    counts = {stage: counted(*STAGES[stage].words, count) for stage, count in Counter(stage for stage, _ in kept).items()}
    order = list(STAGES)  # an arrow back, of a training that begins with another's weights, is left out
    between = {(below[0], key[0]): None for key in kept for below in plan.needs(key)}
    arrows = {(begin, end): None for begin, end in between if order.index(begin) < order.index(end)}
    shown = {"tables": "tables", "figures": "figures", "": "claims"}
    for folder, words in shown.items():
        names = plan.of_kind(folder)
        counts[words] = str(len(names))
        arrows |= {(stage, words): None for name in names for stage, _ in plan.work_of(name)}
    depths: dict[str, int] = {}
    for stage in (name for name in STAGES if name in counts):
        depths[stage] = max((depths[begin] + 1 for begin, end in arrows if end == stage), default=0)
    last = max(depths.values(), default=0) + 1
    columns = [[name for name, depth in depths.items() if depth == i] for i in range(last)] + [list(shown.values())]
    return html.graph([[(name, counts[name]) for name in column] for column in columns], list(arrows))


def table(file: Path) -> str:
    """Make a table's page: as the paper has it, and behind a click the long one, whose equal columns are said once."""
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    with open(file, encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    by_column = {name: column for name, *column in zip(head, *rows, strict=True)}
    same = {name: column[0] for name, column in by_column.items() if len(column) > 1 and len(set(column)) == 1}
    values = ", ".join(f"{name} {value or NOTHING}" for name, value in same.items())
    said = f"<p>The same in all rows: {html.escape(values)}.</p>" if same else ""
    others = [i for i, name in enumerate(head) if name not in same]
    long = html.table([head[i] for i in others], ([_rounded(row[i]) for i in others] for row in rows), "long")
    return html.markdown(text, {}) + html.folded(f"Every number: {file.name}, rounded", said + long)


NOTHING = "–"


def _rounded(text: str) -> str:
    """Round a number of the CSV to five digits."""
    try:
        return f"{float(text):.5g}" if text else NOTHING
    except ValueError:
        return text


def card(run: Run, warnings: list[str], network: str = "", data: str = "") -> str:
    """Make a run's page: in two lines what it is and whether anything is wrong with it; then the rest."""
    assert run.spec and run.metrics and run.ledger and run.provenance  # it is an input
    lead = f'<p class="lead">{html.escape(show.headline(run, network, data))}</p>'
    styles = ["wrong"] * bool(warnings) + ["limit"] * len(run.exclusions) or ["fine"]
    lines = zip(styles, show.warning_lines(warnings, run.exclusions), strict=True)
    parts = [lead, *(f'<p class="{style}">{html.escape(line)}</p>' for style, line in lines)]
    parts += ["<h2>Accuracy</h2>", _accuracy(run), _curve(run)]
    parts += ["<h2>What it is</h2>", html.facts(show.spec_rows(run.spec)), _folded_json("Its whole spec", run.spec)]
    parts += ["<h2>Privacy</h2>", html.facts(show.privacy_rows(run)), _folded_json("Its whole ledger", run.ledger)]
    shown = [("shown in", ", ".join(run.artifacts)), ("folder", run.folder)]
    parts += ["<h2>Provenance</h2>", html.facts(show.made_rows(run) + shown), _sessions(run)]
    return "\n".join([*parts, _folded_json("Its whole provenance", run.provenance)])


def _accuracy(run: Run) -> str:
    sets = show.example_sets(run)
    chooser = "validation" if "validation" in sets else "the test split"
    rows = []
    for key, words in SHOWN.items():
        if at := (run.metrics or {}).get(key):
            values = [at.get(part, {}).get("top1") for part in sets] + [at["test"].get("top5")]
            rows.append((words.format(chooser=chooser), *("–" if value is None else f"{value:.2%}" for value in values)))
    return html.table(("top-1 accuracy", *sets, "test, top-5"), rows)


def _curve(run: Run) -> str:
    lines = {}
    for part in show.example_sets(run)[1:]:
        points = [(row["epoch"], row[f"{part}_top1"]) for row in run.history]
        lines[f"{part} top-1"] = [(x, y) for x, y in points if x is not None and y is not None]
    return html.curves({name: line for name, line in lines.items() if line}, "epoch")


def _sessions(run: Run) -> str:
    rows = [
        (one["started"], str(one["to_step"]), clock(one["seconds"]), one["code"], str(one.get("commit")), str(one.get("data")))
        for one in run.sessions
    ]
    return html.table(("session began", "up to step", "time", "code", "commit", "data"), rows)


def _folded_json(summary: str, value: Any) -> str:
    return html.folded(summary, f"<pre><code>{html.escape(json.dumps(value, indent=2, ensure_ascii=False))}</code></pre>")


def cost(plan: Plan, root: Path) -> tuple[str, str]:
    """Return the cost of the jobs whose results are shown, as Snakemake measured it."""
    measured: dict[str, list[dict[str, Any]]] = {}
    for rule, entry in sorted(benchmarks(plan, root)):
        measured.setdefault(rule, []).append(json.loads(entry))
    rows = [_cost_row(rule, jobs) for rule, jobs in measured.items()]
    rows.append(_cost_row("all", [job for jobs in measured.values() for job in jobs]))
    head = ("rule", "jobs", "time, sum", "median job", "longest job", "CPU time", "most memory")
    note = (
        "Time is wall-clock time, by Snakemake's benchmark of each job; of a training that was interrupted, the last "
        "session's. Jobs beside each other slow each other down."
    )
    return "Cost", html.table(head, rows) + f"<p>{note}</p>"


def benchmarks(plan: Plan, root: Path) -> Iterator[tuple[str, str]]:
    """Yield a job's rule, and its measurement as JSON; of several, the last."""
    names = {*plan.artifacts, *plan.sources, *(name for _, name in plan.kept())}
    for folder in (root / plan.results / "logs", root / plan.shared / "logs"):
        for file in folder.rglob("*.jsonl"):
            if names & {file.stem, file.parent.name} and (lines := file.read_text(encoding="utf-8").splitlines()):
                yield file.relative_to(folder).parts[0].removesuffix(".jsonl"), lines[-1]


def _cost_row(rule: str, jobs: list[dict[str, Any]]) -> tuple[str, ...]:
    times = [job["s"] for job in jobs]
    memory = max((job["max_rss"] or 0 for job in jobs), default=0)
    processor = sum(job["cpu_time"] or 0 for job in jobs)
    spent = (clock(sum(times)), clock(median(times or [0])), clock(max(times, default=0)), clock(processor))
    return rule.replace("_", " "), str(len(jobs)), *spent, f"{memory / 1000:.2f} GB"


def environment(cards: list[Run]) -> tuple[str, str]:
    """Return the packages that the trainings were made with, and those that the lock pins now."""
    made = [run.provenance for run in cards if run.provenance]
    machines = Counter(show.device(one) for one in made)
    rows = [
        ("machine", _each(machines)),
        ("system", _each(Counter(one["machine"].get("system", "unknown") for one in made))),
        ("Python", _each(Counter(one.get("python", "unknown") for one in made))),
        ("lock", _each(Counter(str(one.get("lock")) for one in made))),
        ("commit", _each(Counter(str(one.get("commit")) for one in made))),
    ]
    packages = sorted({name for one in made for name in one["packages"]})
    versions = [(name, _each(Counter(str(one["packages"].get(name)) for one in made))) for name in packages]
    locked = [line.split(" ")[0] for line in LOCK.read_text(encoding="utf-8").splitlines() if line[:1].isalnum()]
    parts = ["<h2>Of the trainings</h2>", html.facts(rows), "<h2>Packages</h2>", html.table(("package", "version"), versions)]
    here = f"<p>{html.inline(f'`{LOCK.relative_to(ROOT)}`, whose digest now begins with `{file_digest(LOCK)[:12]}`')}</p>"
    return "Environment", "\n".join(
        [*parts, "<h2>The lock</h2>", here, html.folded(f"{len(locked)} packages", html.items(locked))]
    )


def _each(counts: Counter[str]) -> str:
    """The values, and how often each where there are several."""
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{value} ({counted('training', 'trainings', count)})" for value, count in counts.most_common())
