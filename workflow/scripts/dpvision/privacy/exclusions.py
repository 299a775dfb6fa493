"""What the ε of a run leaves out, in short sentences. Whatever shows an ε takes them from here."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from dpvision.files import read_json
from dpvision.plan import specs
from dpvision.plan.delta import describe_large_delta
from dpvision.plan.specs import Spec
from dpvision.training.schedules import follows_validation

SIMULATED = "Simulated: no ε holds for this run. Its ε is that of the training that it stands for."
TRAINED_ON = "No ε holds for the {examples} that the search held out and this run trains on."
HELD_OUT = "No ε holds for the {count:,} held-out examples: they {roles}, without noise."
BY_TEST = "The test examples {roles}: the accuracy on them is too high, and no ε holds for them."


def list_exclusions(run: Spec, searched_data: Sequence[Spec | None]) -> list[str]:
    """List what the ε of a run leaves out.

    Args:
        run: The run's spec.
        searched_data: One for each search that chose for the run: the `data` of its trials, which say what it held out.
            None where an older record does not say it.

    Returns:
        A sentence for each thing left out, and one if δ is large; none for a run without a budget, which has no ε.
    """
    if run["budget"] is None:
        return []
    if specs.simulated(run) > 1:
        return [SIMULATED, *_list_test_roles(run)]
    data_left_out = [*_list_trained_on(run, searched_data), *_list_held_out(run, searched_data), *_list_test_roles(run)]
    large_delta = describe_large_delta(run["budget"]["delta"], specs.training_count(run))
    return [*data_left_out, f"{large_delta}."] if large_delta else data_left_out


def searches_of(run: Spec) -> list[str]:
    """Return the names of the searches that choose for a run, before and after they did."""
    return sorted({*run.get("found_by", {}).values(), *specs.searched_keys(run).values()})


def read_searched_data(run: Spec, folder: Path) -> list[Spec | None]:
    """Read what the searches for a run held out, from their records beside the run's folder."""
    return [_read_split(run, folder.parent.parent / "studies" / study / "best.json") for study in searches_of(run)]


def _read_split(run: Spec, best: Path) -> Spec | None:
    split = read_json(best)["privacy"].get("split") if best.exists() else None
    return {**run["data"], **split} if split else None


def trains_on_searched(run: Spec, searched_data: Iterable[Spec | None]) -> bool:
    """Tell whether a run trains on examples that a search for it held out."""
    return bool(_list_trained_on(run, searched_data))


def _list_trained_on(run: Spec, searched_data: Iterable[Spec | None]) -> list[str]:
    """Say how many examples a search held out and the run trains on.

    An older record of a search does not say what it held out. Then some of it is trained on if the run holds nothing out.
    """
    own = Split.from_data(run["data"])
    data = list(searched_data)
    if None in data and own.validation == 0:
        return [TRAINED_ON.format(examples="examples")]
    count = _count_held_out_elsewhere(own, {Split.from_data(one) for one in data if one is not None})
    return [TRAINED_ON.format(examples=f"{count:,} examples")] if count else []


def _list_held_out(run: Spec, searched_data: Iterable[Spec | None]) -> list[str]:
    """Say what the examples that the run holds out decide."""
    own = Split.from_data(run["data"])
    if own.validation == 0:
        return []
    searched = any(data is None or _overlap(own, Split.from_data(data)) for data in searched_data)
    return [HELD_OUT.format(count=own.validation, roles=_join_roles(run, searched))]


def _list_test_roles(run: Spec) -> list[str]:
    return [BY_TEST.format(roles=_join_roles(run))] if specs.chooser(run) == "test" else []


def _join_roles(run: Spec, searched: bool = False) -> str:
    """Say what is decided by the examples that a run holds out, or by those in their place."""
    roles = ["steer the learning rate"] * follows_validation(run["recipe"]["schedule"]["name"])
    roles += ["end the training"] * bool(run["recipe"].get("stop"))
    roles += ["decide what the search finds"] * searched
    others = ", ".join(roles)
    return f"{others} and pick the best epoch" if others else "pick the best epoch"


class Split(NamedTuple):
    """What decides which training examples are held out."""

    train: int
    validation: int
    seed: int
    by: str

    @classmethod
    def from_data(cls, data: Spec) -> "Split":
        return cls(data["train"], data["validation"], data["split_seed"], data.get("by", "permutation"))


def _count_held_out_elsewhere(own: Split, others: set[Split]) -> int:
    """Return how many examples other splits hold out and this one does not."""
    others = {split for split in others if split.validation} - {own}
    if not others:
        return 0
    if own.validation == 0 and len(others) == 1:
        return others.pop().validation
    return len(frozenset().union(*map(_held_out, others)) - _held_out(own))


def _overlap(one: Split, other: Split) -> bool:
    """Tell whether two splits hold out an example in common."""
    return one == other or not _held_out(one).isdisjoint(_held_out(other))


@functools.lru_cache(maxsize=64)  # a split is drawn once for all runs that have it
def _held_out(split: Split) -> frozenset[int]:
    """Return the indices of the examples that are held out."""
    if split.validation == 0:
        return frozenset()
    from dpvision.data.prepared import split as draw_split  # here, since it loads NumPy, which `show` seldom needs

    return frozenset(draw_split(split.train, split.validation, split.seed, split.by)[1].tolist())
