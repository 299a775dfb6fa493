"""The paper's own audit (De et al. 2022, A.2): models that an example was in or not are told apart by their loss on it.

Phase one chooses the example and the recipe. Phase two trains new models: those set aside choose the threshold, the others
count, and counts bound ε. By canaries, whose threshold the claim alone plans, no network is trained.
"""

import itertools
import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from dpvision.audit.canaries import COUNT, Canaries
from dpvision.audit.designs import SECOND, canary_run
from dpvision.audit.subject import Subject
from dpvision.audit.worlds import Worlds
from dpvision.data.prepared import data_part, load
from dpvision.files import replacing, write_csv, write_json
from dpvision.plan.specs import Spec, attack_name, modules_of, training_count, with_values
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit import gaussian
from dpvision.privacy.audit.claim import Rates, Scores, log_ratio, planned
from dpvision.privacy.audit.rates import Counts, counts_of
from dpvision.privacy.mechanism import mechanism_of
from dpvision.provenance import Origin
from dpvision.training.machine import device

BY_MODELS = "by models set aside, which count for nothing else: the best bounds, of ε at δ and of μ, to expect of the others"
BY_CLAIM = "before any data, from the claim alone: the best expected bounds, of ε at δ and of μ"
ATTACKED = "dpvision.audit.attack"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reserved:
    """The scores of models that choose a threshold, and count for nothing else."""

    out: np.ndarray
    inside: np.ndarray

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each score as a threshold, with both error rates as (errors + 0.5) / (n + 1), so that none is 0."""
        thresholds = np.unique(np.concatenate([self.out, self.inside]))
        above = len(self.out) - np.searchsorted(np.sort(self.out), thresholds, "right")
        below = np.searchsorted(np.sort(self.inside), thresholds, "right")
        return thresholds, (above + 0.5) / (len(self.out) + 1), (below + 0.5) / (len(self.inside) + 1)


@dataclass(frozen=True)
class Seen:
    """The scores of an attack that count, those that chose the thresholds, and the thresholds."""

    out: np.ndarray
    inside: np.ndarray
    thresholds: tuple[float, float]
    """For ε at δ, and for μ; the advantage is looked at by the second."""
    reserved: Reserved


def attack(spec: Spec, data: Path, folder: Path) -> dict[str, Any]:
    """Attack as `spec` says, leave the record, and return what attack.json says. What a killed job had done is kept."""
    run = spec["run"]
    origin = Origin(" ".join([ATTACKED, *modules_of(run)]))
    folder.mkdir(parents=True, exist_ok=True)
    prepared = load(data, data_part(run))

    def worlds(row: dict[str, Any]) -> Worlds:
        return Worlds(with_values(spec["run"], row["values"]), row["target"], prepared, attack_name(spec), device())

    tried = tried_settings(spec)
    if len(tried) > 1:
        for i, row in enumerate(tried):
            row |= fitted(*worlds(row).scores(f"phase one, {i}", spec["tried"], folder))
    best = max(tried, key=lambda row: row["total_variation"])
    run = with_values(run, best["values"])
    seen = by_models(spec, worlds(best), folder) if spec["by"] == "models" else by_canaries(spec, folder)
    mechanism = mechanism_of(run)
    assert mechanism is not None
    chosen = {"target": called(best), "values": best["values"]}
    recipe = run["recipe"]
    about = {"name": attack_name(spec), "by": spec["by"], "chosen": chosen, "examples": training_count(run)}
    about |= {"views": recipe["augmentation"]["views"] if recipe["augmentation"] else 1, **found(seen, spec, mechanism)}
    write_csv(folder / "tried.csv", [flat(row) for row in tried])
    with replacing(folder / "scores.npz") as beside:
        np.savez(beside, out=seen.out, inside=seen.inside, reserved_out=seen.reserved.out, reserved_inside=seen.reserved.inside)
    write_json(folder / "attack.json", about)
    write_json(folder / "provenance.json", origin.provenance(spec, data=prepared.digest))
    for part in folder.glob(".*.npy"):
        part.unlink()
    return about


# --- phase one ---


def tried_settings(spec: Spec) -> list[dict[str, Any]]:
    """Return what phase one tries, a row each; canaries are targets themselves, and try nothing."""
    keys, values = list(spec["space"]), list(spec["space"].values())
    targets = spec["targets"] or [None]
    return [
        {"target": target, "values": dict(zip(keys, some, strict=True)), "total_variation": 0.0}
        for target in targets
        for some in itertools.product(*values)
    ]


def called(row: dict[str, Any]) -> str:
    """Call a target as tables do."""
    return "canaries" if row["target"] is None else f"{row['target']['image']} as {row['target']['label']}"


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of phase one as a line of a table; nothing was fitted where there was nothing to choose."""
    measured = {name: row.get(name) for name in ("mean_out", "std_out", "mean_inside", "std_inside")}
    variation = row["total_variation"] if "mean_out" in row else None
    return {"target": called(row), **row["values"], **measured, "total_variation": variation}


def fitted(out: np.ndarray, inside: np.ndarray) -> dict[str, float]:
    """Fit a normal distribution to the scores of each world; return both, and the total variation between them."""
    worlds = [some.astype(np.float64) for some in (out, inside)]
    (m0, s0), (m1, s1) = ((float(some.mean()), max(float(some.std(ddof=1)), 1e-12)) for some in worlds)
    return {"mean_out": m0, "std_out": s0, "mean_inside": m1, "std_inside": s1, "total_variation": variation(m0, s0, m1, s1)}


def variation(m0: float, s0: float, m1: float, s1: float) -> float:
    """Return the total variation between two normal distributions: half of what lies between their densities."""
    # densities cross where a x² + b x + c = 0
    a, b = 1 / s1**2 - 1 / s0**2, 2 * (m0 / s0**2 - m1 / s1**2)
    c = (m1 / s1) ** 2 - (m0 / s0) ** 2 + 2 * math.log(s1 / s0)
    if abs(a) * max(s0, s1) ** 2 < 1e-12:
        crossings = [-c / b] if b else []
    else:
        root = math.sqrt(max(0.0, b * b - 4 * a * c))
        crossings = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))
    edges = np.array([-math.inf, *crossings, math.inf])
    return float(np.abs(np.diff(ndtr((edges - m0) / s0)) - np.diff(ndtr((edges - m1) / s1))).sum() / 2)


# --- phase two ---


def by_models(spec: Spec, worlds: Worlds, folder: Path) -> Seen:
    """Train the models of phase two; the first of them choose the threshold, without a look at the others."""
    reserved = Reserved(*worlds.scores("phase two, set aside", spec["reserved"], folder))
    thresholds = thresholds_of(reserved, spec["models"] - spec["reserved"], spec)
    out, inside = worlds.scores("phase two", spec["models"] - spec["reserved"], folder)
    return Seen(out, inside, thresholds, reserved)


def thresholds_of(by: Rates, count: int, spec: Spec) -> tuple[float, float]:
    """Return the thresholds for `count` scores of each world: for ε at δ and for μ, by models set aside or by the claim."""
    at_delta, middle = (
        planned(by, count, count, spec["confidence"], delta).threshold for delta in (spec["run"]["budget"]["delta"], None)
    )
    return at_delta, middle


def by_canaries(spec: Spec, folder: Path) -> Seen:
    """Attack the engine's own steps at the run's q, σ and steps by canaries, half of which are in."""
    subject = Subject(spec["run"])
    line, mechanism = Canaries(subject), mechanism_of(subject.run)
    assert mechanism is not None
    part = folder / ".canaries.npy"
    there = list(np.load(part)) if part.exists() else []
    for run in range(len(there), math.ceil(2 * spec["models"] / COUNT)):
        joins, seen = canary_run(line, attack_name(spec), run)
        there.append(np.stack([log_ratio(seen.along, mechanism.q, mechanism.sigma).sum(axis=0), joins]))
        with replacing(part) as beside:
            np.save(beside, np.stack(there))
    scores, joined = np.concatenate(there, axis=1)
    inside, out = scores[joined == 1], scores[joined == 0]
    none = np.zeros(0)
    return Seen(out, inside, thresholds_of(Scores.of(mechanism), scores.size // 2, spec), Reserved(none, none))


# --- what it proves ---


def found(seen: Seen, spec: Spec, mechanism: Mechanism) -> dict[str, Any]:
    """Return counts, bounds and the claim; what can be expected at most stands beside the bound."""
    confidence, budget = spec["confidence"], spec["run"]["budget"]
    delta, epsilon = budget["delta"], budget["epsilon"]
    counts, central = (counts_of(seen.inside, seen.out, threshold) for threshold in seen.thresholds)
    bounds, mu, claim = counts.bounds(confidence), central.bounds(confidence).mu, Scores.of(mechanism)
    sizes = counts.inside, counts.out
    return {
        "q": mechanism.q,
        "sigma": mechanism.sigma,
        "steps": mechanism.steps,
        "delta": delta,
        "confidence": confidence,
        "nominal": epsilon,
        "claimed_rdp": mechanism.epsilon(delta),
        "claimed": claim.epsilon(delta),
        "reserved": len(seen.reserved.out),
        "inside": counts.inside,
        "out": counts.out,
        "false_negatives": counts.fn,
        "false_positives": counts.fp,
        "threshold": seen.thresholds[0],
        "threshold_of_mu": seen.thresholds[1],
        "threshold_is": BY_MODELS if spec["by"] == "models" else BY_CLAIM,
        "lower_bound": bounds.epsilon(delta),
        "lower_bound_95": counts.bounds(SECOND).epsilon(delta),
        "mu": max(0.0, mu),
        "epsilon_of_mu": gaussian.epsilon_of(mu, delta),
        "perfect_attack": Counts(*sizes, 0, 0).bounds(confidence).epsilon(delta),
        "best_attack": planned(claim, *sizes, confidence, delta).expected,
        "auc": auc(seen.inside, seen.out),
        "advantage": 1 - central.fn / central.inside - central.fp / central.out,
        "advantage_bound": advantage_bound(epsilon, delta),
    }


def auc(inside: np.ndarray, out: np.ndarray) -> float:
    """Return how likely a score with the target is above one without, ties counted half."""
    ranks = rankdata(np.concatenate([inside, out]))[: len(inside)]
    return float((ranks.mean() - (len(inside) + 1) / 2) / len(out))


def advantage_bound(epsilon: float, delta: float) -> float:
    """Return the most by which the rates of true and false positives can differ under (ε, δ) (Humphries et al. 2020)."""
    return (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1)


def listing(about: dict[str, Any]) -> str:
    """Return the outcome for a terminal."""
    return (
        f"{about['name']}: ε ≥ {about['lower_bound']:.3f} at {about['confidence']:.1%}, of {about['nominal']:g} "
        f"({about['claimed']:.2f} at the tightest); {about['out']} and {about['inside']} {about['by']}, at most "
        f"{about['perfect_attack']:.2f} of so many"
    )
