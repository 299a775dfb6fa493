"""Two runs side by side: differences in what was asked for, and in what came out."""

from typing import Any

from dpvision.errors import UserError
from dpvision.looking import show
from dpvision.looking.runs import Run, flat
from dpvision.looking.text import aligned
from dpvision.plan import specs

MISSING = "absent"
SPLIT = ("prepared", "validation", "split_seed", "by")


def compared(first: Run, second: Run) -> dict[str, Any]:
    for run in (first, second):
        if run.spec is None:
            raise UserError(f"{run.folder} has no spec.json and is of another configuration: there is nothing to compare")
    one, other = flat(first.spec or {}), flat(second.spec or {})
    keys = sorted(key for key in {**one, **other} if one.get(key, MISSING) != other.get(key, MISSING))
    results, others = _results(first), _results(second)
    return {
        "runs": [first.folder, second.folder],
        "spec": {key: [one.get(key, MISSING), other.get(key, MISSING)] for key in keys},
        "results": {key: [results.get(key), others.get(key)] for key in {**results, **others}},
        "paired": _paired(first, second),
    }


def _results(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in show.WHEN:
        for name in show.SETS:
            if run.metrics and key in run.metrics:
                found |= {f"{key}.{name}.{what}": value for what, value in run.metrics[key].get(name, {}).items()}
    if run.ledger and run.history:
        of = run.ledger.get("simulated", run.ledger)
        found |= {f"epsilon.{name}": value for name, value in (of["epsilon"] or {}).items()}
        found |= {key: value for key, value in of.get("curve", {}).items() if key != "at_false_positives"}
        found |= {key: of[key] for key in ("noise_multiplier",) if key in of}
        found["clipped in the last epoch"] = run.history[-1]["clipped"]
    if run.provenance:
        found |= {"seconds": show.seconds(run), "peak_memory_mb": run.provenance["peak_memory_mb"]}
    return {key: value for key, value in found.items() if value is not None}


def _paired(first: Run, second: Run) -> dict[str, Any]:
    """Tell what two trainings share by chance: the seed starts both, the spec names the streams apart (training/fit.py)."""
    one, other = first.spec or {}, second.spec or {}
    return {
        "seed": one["seed"] == other["seed"],
        "held_out_examples": all(
            one["data"].get(k) == other["data"].get(k) for k in ("prepared", "validation", "split_seed", "by")
        ),
        "samples_views_and_noise": specs.on_one_device(one) == specs.on_one_device(other),
    }


def as_text(found: dict[str, Any]) -> str:
    lines = [f"A  {found['runs'][0]}", f"B  {found['runs'][1]}"]
    rows = [(key, *map(_said, values)) for key, values in found["spec"].items()]
    lines += ["", *aligned([("spec", "A", "B"), *rows])] if rows else ["", "their specs are the same"]
    rows = [(key, *map(_said, values), _difference(*values)) for key, values in found["results"].items()]
    lines += ["", *aligned([("result", "A", "B", "B - A"), *rows])] if rows else ["", "neither has results"]
    words = {key: key.replace("_", " ") for key in found["paired"]}
    same = [words[key] for key, shared in found["paired"].items() if shared]
    apart = [words[key] for key, shared in found["paired"].items() if not shared]
    return "\n".join(
        [*lines, "", f"the same in both: {', '.join(same) or 'nothing'}", f"each its own: {', '.join(apart) or 'nothing'}"]
    )


def _said(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _difference(one: float | None, other: float | None) -> str:
    return "" if one is None or other is None else f"{other - one:+.4g}"
