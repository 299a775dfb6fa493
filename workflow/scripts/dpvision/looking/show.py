"""A run's card: what it is, what came out, what it spent, how it went."""

import math
from collections.abc import Sequence
from typing import Any

from dpvision.logs import clock
from dpvision.looking.runs import Run
from dpvision.looking.status import how_far
from dpvision.looking.text import aligned, curve
from dpvision.plan import specs
from dpvision.plan.specs import Spec
from dpvision.provenance import departures

SETS = ("train", "validation", "test")
LENGTH = ("epochs", "steps", "batch")
ACCOUNTANTS = ("rdp", "prv", "pld")
WHEN = {"last_step": "last step", "best_epoch": "best epoch", "averaged": "averaged"}


def as_json(run: Run) -> dict[str, Any]:
    return {
        "run": run.name,
        "folder": run.folder,
        "state": state(run),
        "artifacts": run.artifacts,
        "other_code": run.other_code,
        "seconds": seconds(run),
        "interruptions": interruptions(run),
        "exclusions": run.exclusions,
        "device": device(run.provenance) if run.provenance else None,
        **{key: getattr(run, key) for key in ("spec", "metrics", "ledger", "provenance", "progress", "owner", "history")},
    }


def as_text(run: Run) -> str:
    lines = [headline(run), *warning_lines(doubts(run), run.exclusions)] if run.metrics else []
    rows = [("run", run.folder), ("state", _state_in_words(run))]
    if run.artifacts:
        rows.append(("shown in", ", ".join(run.artifacts)))
    if run.spec:
        rows += spec_rows(run.spec)
    rows += privacy_rows(run)
    if run.provenance:
        rows += made_rows(run)
    lines += aligned(rows)
    if run.metrics:
        lines += ["", *_metrics(run)]
    if run.history:
        lines += ["", *_curve(run)]
    return "\n".join(lines)


def headline(run: Run, network: str = "", data: str = "") -> str:
    """Say in a line what a run that is done is and how well it does; names are those of its spec where none are given."""
    assert run.spec and run.metrics
    spec, of_authors = run.spec, "protocol" in run.spec
    at, when = ("best_epoch", "best epoch by test (authors' protocol)") if of_authors else ("last_step", "last step")
    who = f"{network or spec['model']['slug']} on {data or spec['data']['name']}, {_level(run)}, seed {spec['seed']}"
    top1 = run.metrics[at]["test"]["top1"]
    return f"{who}: {'no finite' if top1 is None else f'{top1:.2%}'} test accuracy, {when}."


def _level(run: Run) -> str:
    """Say the ε of a run's budget, or what it spent where the budget has none."""
    spec = run.spec or {}
    if not spec["budget"]:
        return "not private"
    ledger = run.ledger or {}
    spent = ledger.get("simulated", ledger).get("epsilon", {}).get("rdp")
    epsilon = spec["budget"].get("epsilon", "solve")
    said = f"ε = {epsilon:g}" if epsilon != "solve" else f"ε = {spent:.3f}" if spent else "ε as spent"
    return f"{said}, simulated and not private" if "simulated" in ledger else said


def doubts(run: Run) -> list[str]:
    """Return what one should know of a run before trusting it, as far as its record says it."""
    said = departures(run.provenance or {"stage": ""})
    numbers = [value for row in run.history for value in row.values() if value is not None]
    parts = [part for at in (run.metrics or {}).values() for part in at.values() if isinstance(part, dict)]
    if not all(map(math.isfinite, numbers)) or any(value is None for part in parts for value in part.values()):
        said.append("its loss or accuracy was no finite number at some time")
    return said + ([f"made by other code than is here ({run.other_code})"] if run.other_code else [])


def warning_lines(doubts: Sequence[str], exclusions: Sequence[str]) -> list[str]:
    """Return what to know before trusting a run.

    Args:
        doubts: What is wrong with its record.
        exclusions: What its ε leaves out, a sentence each.
    """
    lines = [f"To know before trusting it: {'; '.join(doubts)}."] if doubts else []
    return [*lines, *exclusions] or ["Nothing to warn of."]


def state(run: Run) -> str:
    """Return the state in the words of status; only its log knows if it failed."""
    return "done" if run.provenance else "running" if run.owner else "missing"


def _state_in_words(run: Run) -> str:
    far = how_far(run.progress)
    if state(run) == "running":
        return f"running: {far}{run.owner}"
    kept = f"; continues from step {run.progress['kept']}" if run.progress and run.progress["kept"] else ""
    return "done" if run.provenance else f"missing{kept}; why: python -m dpvision status"


def spec_rows(run: Spec) -> list[tuple[str, str]]:
    data, model, recipe = run["data"], run["model"], run["recipe"]
    rest = {key: value for key, value in model.items() if key not in ("family", "slug")}
    optimizer, schedule = dict(recipe["optimizer"]), dict(recipe["schedule"])
    rows = [
        ("data", f"{data['name']}: {specs.training_count(run)} train, {data['validation']} validation, {data['test']} test"),
        ("model", f"{model['slug']} ({_pairs(rest)})"),
        (
            "optimiser",
            f"{optimizer.pop('name')} ({_pairs(optimizer)}), schedule {schedule.pop('name')} {_pairs(schedule)}".rstrip(),
        ),
        ("length", _length(run)),
    ]
    shown = ("optimizer", "schedule", *LENGTH)
    rest = {key: value for key, value in recipe.items() if key not in shown and value is not None}
    rows.append(("recipe", _pairs(rest)))
    if (part := specs.trained_part(run)) != "all":
        rows.append(("trains", f"{part}; the rest is frozen"))
    if found := run.get("found_by"):
        rows.append(("searched", ", ".join(f"{key} by {study}" for key, study in found.items())))
    return [*rows, ("seed", str(run["seed"]))]


def _length(run: Spec) -> str:
    recipe = run["recipe"]
    if any(f"recipe.{key}" in specs.searched_keys(run) for key in LENGTH):
        return _pairs({key: recipe[key] for key in LENGTH if key in recipe})
    epochs = f"{recipe['epochs']} epochs, " if "epochs" in recipe else ""
    steps = specs.step_count(run) if specs.has_length(run) else "as many as the budget allows:"
    return f"{epochs}{steps} steps of {recipe['batch']} examples expected"


def _pairs(values: dict[str, Any]) -> str:
    def said(value: Any) -> str:
        if isinstance(value, dict):
            return f"({_pairs(value)})" if "study" not in value else "left to a search"
        return f"{value:g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{key.replace('_', ' ')} {said(value)}" for key, value in values.items())


def privacy_rows(run: Run) -> list[tuple[str, str]]:
    budget = run.spec["budget"] if run.spec else None
    if run.spec and not budget:
        return [("privacy", "not private")]
    rows = []
    if run.ledger:
        of = run.ledger.get("simulated", run.ledger)
        spent = ", ".join(f"{of['epsilon'][name]:.3f} by {name.upper()}" for name in ACCOUNTANTS if name in of["epsilon"])
        words = "simulated ε" if "simulated" in run.ledger else "ε"
        target = f", of {of['epsilon']['target']:g}" if "target" in of["epsilon"] else ""
        rows.append(("privacy", f"{words} {spent}{target} at δ {of['delta']:g}"))
        if "curve" in of:
            rows.append(("", curve_in_words(of["curve"])))
        noise = f"σ {of['noise_multiplier']:.3f}, sampling rate {of['sampling_rate']:.4f}, {_steps(of['steps'])}"
        rows.append(("noise", noise))
        rows += [("", words) for words in _stopped_in_words(of)]
        if "release" in run.ledger:
            rows.append(
                ("", "secret: these weights may be released, as far as noise is concerned; ledger.json says what else it needs")
            )
        for search in run.ledger.get("searches", []):
            if "epsilon_covered" in search:
                words = f"with its search of {search['mean_trials']} trials on average, covered by a theorem"
                rows.append(("", f"{words}: ε {search['epsilon_covered']:.2f}"))
            else:
                rows.append(("", f"with its search's {search['trials']} trials: ε {search['epsilon_all_composed']:.2f}"))
    elif budget:
        given = [f"{word} {budget[key]:g}" for word, key in (("ε", "epsilon"), ("σ", "sigma"), ("δ", "delta")) if key in budget]
        rows.append(("privacy", f"{', '.join(given)}: the budget"))
        rows += [("", exclusion) for exclusion in run.exclusions]
    clipped = [row["clipped"] for row in run.history if row["clipped"] is not None]
    if clipped:
        share = f"{clipped[0]:.0%} of examples in the first epoch, {clipped[-1]:.0%} in the last"
        rows.append(("clipped", f"{share}, {sum(clipped) / len(clipped):.0%} on average"))
    return rows


def _steps(steps: dict[str, int]) -> str:
    made, planned = steps["made"], steps.get("planned", steps["made"])
    return f"{made} steps" if made == planned else f"{made} of {planned} planned steps"


def _stopped_in_words(ledger: dict[str, Any]) -> list[str]:
    """Say which ε is the guarantee of a run that ended early; nothing where it made all of its steps."""
    if "stopped" in ledger:
        of_made = ledger["stopped"]["epsilon"]["rdp"]
        return [f"ended early: ε is that of all planned steps; the steps made alone spend {of_made:.3f} by RDP, no guarantee"]
    if ledger["steps"]["made"] < ledger["steps"].get("planned", 0):
        return ["ended early, and this ledger is old: its ε is that of the steps made alone, which is no guarantee"]
    return []


def curve_in_words(curve: dict[str, float]) -> str:
    """Say what a privacy curve means for an attacker who guesses whether an example was in the data."""
    return (
        f"μ {curve['mu']:.3f}; an attacker with {curve['at_false_positives']:.1%} false positives finds at most "
        f"{curve['true_positives']:.1%}; advantage at most {curve['advantage']:.1%}"
    )


def seconds(run: Run) -> float | None:
    """Return the seconds of all its sessions."""
    return round(sum(session["seconds"] for session in run.sessions), 3) if run.provenance else None


def interruptions(run: Run) -> int | None:
    return len(run.sessions) - 1 if run.provenance else None


def device(provenance: dict[str, Any]) -> str:
    machine = provenance["machine"]
    return (
        machine["gpu"]
        if "gpu" in machine
        else f"{machine['processor']}, {machine['threads']} threads".replace("1 threads", "1 thread")
    )


def made_rows(run: Run) -> list[tuple[str, str]]:
    made = run.provenance or {}
    often = {0: "never interrupted", 1: "interrupted once"}.get(
        len(run.sessions) - 1, f"interrupted {len(run.sessions) - 1} times"
    )
    here = f"other than what is here: {run.other_code}" if run.other_code else f"{made['code']}, as is here"
    return [
        ("time", f"{clock(seconds(run) or 0)} on {device(made)}; {often}"),
        ("code", f"{here}; commit {made['commit'] or 'unknown'}, torch {made['packages']['torch']}"),
    ]


def example_sets(run: Run) -> list[str]:
    """Return the sets of examples whose accuracy is shown. Where the test split is validated on, it is shown once."""
    is_validated_on_test = run.spec is not None and specs.chooser(run.spec) == "test"
    return [name for name in SETS if name != "validation" or not is_validated_on_test]


def _metrics(run: Run) -> list[str]:
    sets = example_sets(run)
    chooser = "validation" if "validation" in sets else "test"
    rows: list[tuple[str, ...]] = [("top-1", *sets, "test top-5")]
    for key, words in WHEN.items():
        if at := (run.metrics or {}).get(key):
            which = f" {at['epoch']} (by {chooser})" if "epoch" in at else f" {at['step']}" if "step" in at else ""
            values = [at.get(name, {}).get("top1") for name in sets] + [at["test"].get("top5")]
            rows.append((words + which, *("" if value is None else f"{value:.2%}" for value in values)))
    return aligned(rows)


def _curve(run: Run) -> list[str]:
    lines = []
    for name in example_sets(run)[1:]:
        values = [value for row in run.history if (value := row[f"{name}_top1"]) is not None]
        if values:
            lines += [f"{name} top-1, epochs 1 to {len(run.history)}", *curve(values)]
    return lines
