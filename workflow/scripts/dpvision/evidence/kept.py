"""Kept results of one scale: its plan, tables, verdicts and ledgers, as `python -m dpvision keep` left them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpvision.data.prepared import split_of
from dpvision.errors import UserError
from dpvision.files import read_json
from dpvision.plan import Plan
from dpvision.plan.plan import LABELS
from dpvision.privacy.ledger import SEE_SEARCHES, choice_of

SOLVE = "solve"  # in the place of an ε that a budget leaves open
TABLES = ("accuracy", "tuned", "best_trials")  # kinds whose rows are trainings, with a column for each seed


@dataclass(frozen=True)
class Kept:
    """A folder of kept results."""

    folder: Path
    plan: Plan
    """The plan of its scale, by the configuration of today."""

    @property
    def scale(self) -> str:
        return self.plan.scale

    @cached_property
    def labels(self) -> dict[str, dict[str, Any]]:
        """Return what is shown of each artifact, as it was when the folder was written."""
        return read_json(self.folder / LABELS)

    @cached_property
    def claims(self) -> dict[str, pd.DataFrame]:
        """Return the verdicts of each page of claims: a row for each claim of the paper, and one for each comparison."""
        return {name: self.table(name, "") for name in self.of_kind("claims")}

    def of_kind(self, kind: str) -> list[str]:
        """Return the artifacts of a kind that are here."""
        there = (name for name in self.labels if (self.folder / "plan" / f"{name}.json").exists())
        return [name for name in there if read_json(self.folder / "plan" / f"{name}.json")["kind"] == kind]

    def table(self, artifact: str, below: str = "tables") -> pd.DataFrame:
        """Return the long table of an artifact; an empty one where it is not here."""
        file = self.folder / below / f"{artifact}.csv"
        return pd.read_csv(file) if file.exists() else pd.DataFrame()

    def called(self, artifact: str, coordinate: str, value: str) -> str:
        """Return what an artifact calls a model or a data set."""
        name: str = self.labels[artifact].get(f"{coordinate}s", {}).get(value, value)
        return name

    def trained(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield a table and a row of it for each cell with trainings, once where several tables show the same."""
        seen: set[tuple[str, ...]] = set()
        for artifact in (name for kind in TABLES for name in sorted(self.of_kind(kind))):
            for row in self.table(artifact).to_dict("records"):
                runs = tuple(run.name for run in self.runs(artifact, row)) if row.get("state") == "run" else ()
                if runs and (*runs, row["metric"]) not in seen:
                    seen.add((*runs, row["metric"]))
                    yield artifact, row

    def runs(self, artifact: str, row: dict[str, Any]) -> list[Path]:
        """Return the folders of the trainings that a row of a table is of."""
        return [run for cell in self._cells(artifact) if _is_of(row, cell) for run in self._runs_of(cell)]

    def ours(self, number: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of a headline number's table that have trainings of it: one for each protocol."""
        wanted = number["at"] | {key: number[key] for key in ("metric", "weights", "split") if key in number}
        rows = self.table(number["artifact"]).to_dict("records")
        there = (row for row in rows if all(same(row[key], wanted[key]) for key in wanted if key in row))
        found = {row["protocol"]: row for row in there if row.get("state") == "run" and row.get("n")}
        return list(found.values())

    def scored_on(self, study: str) -> dict[str, Any]:
        """Return what the trials of a search were given of the data: it says what was held out to score them."""
        if study not in (planned := self.plan.of("search")):
            gone = f"{self.folder} has trainings with values of {study}, a search that its scale plans no more"
            raise UserError(f"{gone}; take the folders of these trainings out of runs/")
        data: dict[str, Any] = planned[study]["run"]["data"]
        return data

    def scored(self, spec: dict[str, Any]) -> tuple[int, int]:
        """Return how many examples the searches for a training held out to score trials, and how many of them it trains on."""
        held_out = [split_of(self.scored_on(study))[1] for study in sorted(set(spec.get("found_by", {}).values()))]
        read = np.unique(np.concatenate([*held_out, np.array([], dtype=int)]))
        return read.size, np.setdiff1d(read, split_of(spec["data"])[1]).size

    def _cells(self, artifact: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_json(self.folder / "plan" / f"{artifact}.json")["cells"]
        return found

    def _runs_of(self, cell: dict[str, Any]) -> list[Path]:
        return [self.folder / "runs" / run for run in cell["work"].get("train", {}).values()]


def _is_of(row: dict[str, Any], cell: dict[str, Any]) -> bool:
    return all(same(row.get(key), value) for key, value in cell["at"].items())


def kept_in(folder: Path, plan_of: Callable[[str], Plan]) -> list[Kept]:
    """Return what is kept in a folder, by scale; it is an error if nothing is."""
    found = [Kept(labels.parent, plan_of(labels.parent.name)) for labels in sorted(folder.glob(f"*/{LABELS}"))]
    if not found:
        raise UserError(f"no results are kept in {folder}: python -m dpvision keep {folder / 'SCALE'} --scale SCALE")
    return found


def same(one: Any, other: Any) -> bool:
    """Tell whether a table's value is a coordinate: what a table leaves empty is null."""
    if other is None or one is None or pd.isna(one):
        return other is None and (one is None or pd.isna(one))
    if isinstance(other, bool):
        return str(one) == str(other)
    try:
        return float(one) == float(other)
    except ValueError:
        return str(one) == str(other)


def short(title: str) -> str:
    """Return the authors and the year of a paper, which its title ends in; a title without them as it is."""
    return title.rpartition("(")[2].rstrip(")")


def price_of(ledger: dict[str, Any]) -> float:
    """Return the ε of a training and all its searches: of their composition, or less where the sampler covers them."""
    return max(search.get("epsilon_covered") or search["epsilon_all_composed"] for search in ledger["searches"])


def not_accounted(spec: dict[str, Any], ledger: dict[str, Any]) -> list[str]:
    """Return what a training's ledger leaves out, but for searches; what held-out examples chose is in the words of today.

    Ledgers of old say that a loss steered the learning rate where it was constant.
    """
    told_anew = ("validation examples", "test examples", SEE_SEARCHES)
    return [choice_of(spec), *(said for said in ledger["not_accounted"] if not said.startswith(told_anew))]


def level(row: dict[str, Any]) -> str:
    """Say at which ε a table's row was trained; where ε is what σ and steps spend, that."""
    if same(row["epsilon"], None):
        return "without privacy"
    return f"ε = {float(row['epsilon']):g}" if row["epsilon"] != SOLVE else f"σ = {float(row['sigma']):g}"


def values_of(row: dict[str, Any]) -> list[float]:
    """Return the numbers of each seed in a table's row."""
    return [value for key, value in row.items() if key.startswith("seed_") and not pd.isna(value)]
