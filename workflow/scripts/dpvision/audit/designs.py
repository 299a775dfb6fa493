"""The designs: each attacks a subject in one way, and returns tests; of canaries also the bounds that they prove."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from dpvision.audit.canaries import COUNT, Canaries, Seen
from dpvision.audit.judge import CONSISTENT, LOOSE, REFUTED, Test, exactly, of_counts, smallest_level
from dpvision.audit.replay import Bench, TiedAndFrozen, benches
from dpvision.audit.subject import Subject, claim_of
from dpvision.privacy.accounting import Mechanism
from dpvision.privacy.audit import gaussian, one_run, two_sided
from dpvision.privacy.audit.claim import DELTAS, Scores, family_epsilon, log_ratio, planned
from dpvision.privacy.audit.rates import Counts, counts_of
from dpvision.privacy.audit.two_sided import Found
from dpvision.privacy.fast import Choices
from dpvision.training.randomness import stream_seed

LENGTHS = (0.98, 1 + 1e-5)  # bounds of what a neighbour adds, in C: rounding may shorten it, never lengthen it
SELDOM = 1e-6
SAME = (0.999, 1.001)  # bounds of a ratio that is 1 but for rounding
QUIET = 0.1  # σ at which single coins can be seen
COINS, STEPS_OF_NOISE = 200, 3
EPOCHS = 4  # epochs whose coins are made visible, at least, where a run has so many
COMPARED = 20  # epochs that are compared with each other, at most
ODDEST = "of the oddest two epochs"
STEPS = 20_000  # steps with canaries in all, where a run is long
STEPS_MADE = "steps that moved the weights, less those of the ledger"
ALIGNED, PAIRED = 20, 1000
GUESSES = 200  # guesses of one run: as many of the highest scores as of the lowest
FEW = 1e-5  # δ of the one-run bounds, which need a small one
CHECKPOINTS = 8
POINTS = 200  # points of a curve
NUMBERS = 2_000_000  # numbers that the tests of noise look at, or a few more
SECOND = 0.95  # confidence that is reported beside
FLAWLESS, EITHER = 0.005, 0.05  # distances by which ε of an accountant may lie below and above ours


@dataclass
class Result:
    """The outcome of a design."""

    tests: list[Test]
    bounds: list[dict[str, Any]] = field(default_factory=list)
    roc: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __add__(self, other: "Result") -> "Result":
        return Result(self.tests + other.tests, self.bounds + other.bounds, self.roc + other.roc, self.steps + other.steps)


def replay(
    subject: Subject,
    name: str,
    network: nn.Module | None = None,
    noisy: bool = True,
    clipping: Choices | None = None,
) -> Result:
    """Replay a neighbour through a network, the subject's own without another; look at its noise, too.

    `clipping`: the choices that a training with this network was made with, to be attacked as well.
    """
    tests = []
    for views, bench in benches(subject, network or subject.training.network):
        of = f"{name}, K = {views}, {subject.run['recipe']['precision']}{subject.where}"
        found = bench.replayed(clipping)
        tests.append(
            exactly("replay", of, "longest difference, in C", found.longest, 1.0, (0, LENGTHS[1]), CONSISTENT, REFUTED)
        )
        tests.append(
            exactly("replay", of, "shortest difference, in C", found.shortest, 1.0, (LENGTHS[0], math.inf), LOOSE, REFUTED)
        )
        tests.append(
            exactly("replay", of, "noise with the neighbour, over that without", found.divided, 1.0, SAME, REFUTED, REFUTED)
        )
        tests.append(exactly("replay", of, "untrained tensors that moved", len(found.moved), 0, (0, 0), REFUTED, REFUTED))
        if views == 1 and noisy:
            tests += _noise_of(bench, of)
    return Result(tests)


def tied_and_frozen(subject: Subject) -> Result:
    """Replay a neighbour through weights that are used twice, beside a part that is not trained."""
    data = subject.run["data"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = TiedAndFrozen(data["shape"][0], data["classes"])
    return replay(subject, "tied and frozen", network)


def _noise_of(bench: Bench, of: str) -> list[Test]:
    """Look at the noise of every parameter of a network."""
    sigma = 1.0
    steps = bench.noise(sigma, STEPS_OF_NOISE)
    each = [two_sided.variance(torch.cat([step[name] for step in steps]).numpy()) for name in steps[0]]
    rows = np.stack([values[:64].numpy() for step in steps for values in step.values() if len(values) >= 64])
    some = torch.cat([values[:4096] for values in steps[0].values()]).numpy() * bench.step.clip
    return [
        Test("noise", of, "variance, of the oddest parameter", two_sided.oddest(each), REFUTED, LOOSE),
        Test("noise", of, "correlation of two parameters or steps", two_sided.largest_correlation(rows), CONSISTENT, REFUTED),
        Test("noise", of, "share that is as coarse as bfloat16", two_sided.coarse(some), CONSISTENT, REFUTED),
    ]


def coins(subject: Subject) -> Result:
    """Make the sampler's coins visible in whole trainings: with little noise, who joined a step shows."""
    line = Canaries(subject, sigma=QUIET)
    line.place(np.ones(COUNT, bool))
    ends = subject.training.ends
    epochs = next((count for count, end in enumerate(ends, 1) if count >= EPOCHS and end >= COINS), len(ends))
    trainings = [line.train(f"coins, training {i}", epochs) for i in range(math.ceil(COINS / ends[epochs - 1]))]
    of = f"q = {line.q:.4g}{subject.where}"
    return Result(_coins_of(of, line.q, trainings, ends) + _noise_of_epochs(of, trainings[0], ends))


def _coins_of(of: str, q: float, trainings: list[Seen], ends: list[int]) -> list[Test]:
    """Look at who joined: how often, and whether the coins are independent."""
    joined = np.concatenate([seen.along > 0.5 for seen in trainings])
    steps = len(joined)
    rate = min(max(float(joined.mean()), SELDOM), 1 - SELDOM)  # the rate that was found: another test looks at whether it is q
    found = {
        "share that joins": (two_sided.rate(int(joined.sum()), joined.size, q), LOOSE),
        "spread of a canary's participations": (two_sided.dispersion(joined.sum(0), steps, rate), REFUTED),
        "spread of the sample's size": (two_sided.dispersion(joined.sum(1), COUNT, rate), REFUTED),
    }
    if pairs_of_epochs := _pairs_of_epochs(trainings[0].along > 0.5, ends):
        found[f"correlation of samples, {ODDEST}"] = (
            two_sided.oddest([two_sided.association(*pair) for pair in pairs_of_epochs]),
            REFUTED,
        )
    # far more noise than there should be hides the coins; other designs see that
    hidden = np.concatenate([seen.across for seen in trainings]).std() > 2 * QUIET
    unseen = Found(math.nan, math.nan, 1.0, 1.0, 0)
    return [Test("coins", of, what, unseen if hidden else one, low, REFUTED) for what, (one, low) in found.items()]


def _noise_of_epochs(of: str, seen: Seen, ends: list[int]) -> list[Test]:
    """Look at whether two epochs have the same noise."""
    if not (pairs_of_epochs := _pairs_of_epochs(seen.across, ends)):
        return []
    found = two_sided.oddest([two_sided.correlation(*pair) for pair in pairs_of_epochs])
    return [Test("noise", of, f"correlation of noise, {ODDEST}", found, REFUTED, REFUTED)]


def _pairs_of_epochs(rows: np.ndarray, ends: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each two of a training's first epochs, the longer one cut to the length of the other.

    Args:
        rows: A row for each step.
        ends: The steps after which an epoch is over.

    Returns:
        Pairs of arrays of one shape; none if the training has a single epoch.
    """
    epochs = [epoch for epoch in np.split(rows, ends)[:COMPARED] if len(epoch)]
    pairs = []
    for first, second in itertools.combinations(epochs, 2):
        length = min(len(first), len(second))
        pairs.append((first[:length], second[:length]))
    return pairs


def pairs(subject: Subject, steps: int = PAIRED) -> Result:
    """Compare data sets at q = 1 and σ = 1: one example against many that pull the other way; one alone, its views alike."""
    claim = Scores.of(Mechanism(1.0, 1.0, 1))
    middle = planned(claim, steps, steps, 0.999, None)
    tests = []
    for name, others in (("against many", ALIGNED), ("alone", 1)):
        worlds = []
        for joins in (False, True):
            who = np.arange(others + joins)
            line = Canaries(subject, sigma=1.0, q=1.0, count=len(who))
            line.place((who == others) | (name == "against many"), labels=(who == others) * 1, pixels=0 * who)
            line.begin(f"pairs, {name}, {'in' if joins else 'out'}")
            pull = others if name == "against many" else 0
            worlds.append(pull - line.repeat_step(steps).along[:, 0])
        out, inside = worlds
        of = f"{name}, K = {subject.views}, {subject.run['recipe']['precision']}{subject.where}"
        counts = counts_of(log_ratio(inside, 1.0, 1.0), log_ratio(out, 1.0, 1.0), middle.threshold)
        tests.append(of_counts("pairs", of, "excess over the claimed ε", counts, claim.curve(), threshold=middle.threshold))
        shift = two_sided.mean(inside - out, 1.0)
        tests.append(Test("pairs", of, "by how much the neighbour moves the step, in C", shift, LOOSE, REFUTED))
    return Result(tests)


def canaries(subject: Subject, name: str, runs: int, confidence: float) -> Result:
    """Attack whole runs with canaries, each in by its own fair coin; what all steps gave away together is its score."""
    line = Canaries(subject)
    runs = max(1, min(runs, STEPS // subject.training.planned))
    inside = [_who(subject, name, run) for run in range(runs)]
    line.place(inside[0])
    seen = line.train()
    moves = len(seen.along)
    mechanism, delta, epsilons = claim_of(subject.ledger(line.training.mechanism))
    checkpoints = sorted({math.ceil(mechanism.steps * i / CHECKPOINTS) for i in range(1, CHECKPOINTS + 1)})
    scores: list[np.ndarray] = []
    given: list[np.ndarray] = []
    noise: list[Seen] = []
    for run, joins in enumerate(inside):
        if run:
            _, seen = canary_run(line, name, run)
        cumulated = np.cumsum(log_ratio(seen.along, mechanism.q, mechanism.sigma), axis=0)
        scores.append(cumulated[[min(step, len(cumulated)) - 1 for step in checkpoints]])
        given.append(seen.along[:, joins].mean(axis=0))  # a canary's mean over the steps
        if sum(one.across.size for one in noise) < NUMBERS:
            noise.append(seen)
    every, who = np.concatenate(scores, axis=1), np.concatenate(inside)
    claim = Scores.of(mechanism)
    of = f"{name}, q = {mechanism.q:.4g}, σ = {mechanism.sigma:.4g}, {mechanism.steps} steps{subject.where}"
    tests = [
        exactly("ledger", of, STEPS_MADE, moves - mechanism.steps, 0, (0, 0), LOOSE, REFUTED),
        *_accountants(of, claim.epsilon(delta), epsilons),
        *_noise_across(of, noise, mechanism.sigma),
    ]
    shift = two_sided.mean(np.concatenate(given), mechanism.q)
    tests.append(Test("canaries", of, "mean of what canaries give, in C", shift, LOOSE, REFUTED))
    found, roc = _bounds(of, every[-1], who, mechanism, claim, delta, confidence)
    tests += found.tests
    (row,) = found.bounds
    row |= {f"claimed_{accountant}": value for accountant, value in epsilons.items()}
    row |= {"runs": runs, "seed": subject.run["seed"], "moved": moves}
    tests += _one_run(of, every[-1, :COUNT], who[:COUNT], claim, row, confidence)
    return Result(tests, found.bounds, roc, _over_steps(of, every, who, checkpoints, mechanism, delta, confidence))


def canary_run(line: Canaries, name: str, run: int) -> tuple[np.ndarray, Seen]:
    """Make a whole run of canaries from its beginning; return who was in, and what the weights gave away."""
    joins = _who(line.subject, name, run)
    line.place(joins)
    return joins, line.train(f"{name}, run {run}")


def _who(subject: Subject, name: str, run: int) -> np.ndarray:
    """Toss a fair coin for each canary of a run."""
    return np.random.default_rng(stream_seed(subject.run["seed"], f"who is in, {name}, run {run}")).random(COUNT) < 0.5


def _accountants(of: str, ours: float, epsilons: dict[str, float]) -> list[Test]:
    """Hold what the accountants say against our own convolution, which shares nothing with them."""
    tests = []
    for accountant, epsilon in epsilons.items():
        most = math.inf if accountant == "rdp" else (1 + EITHER) * ours + EITHER
        looks_at = f"ε by {accountant.upper()}, ours is {ours:.4g}"
        tests.append(exactly("ledger", of, looks_at, epsilon, ours, (ours - FLAWLESS, most), REFUTED, LOOSE))
    return tests


def _noise_across(of: str, seen: list[Seen], sigma: float) -> list[Test]:
    """Look at the weights across the canaries' direction, where there is noise alone."""
    rows = [one.across / sigma for one in seen]
    many = np.concatenate(rows)
    steps = [(row[1:], row[:-1]) for row in rows if len(row) > 1]
    later, sooner = (np.concatenate(part) for part in zip(*steps, strict=True))
    return [
        Test("noise", of, "variance, in σ² C²", two_sided.variance(many), REFUTED, LOOSE),
        Test("noise", of, "kurtosis", two_sided.tails(many), REFUTED, REFUTED),
        Test("noise", of, "correlation of two steps", two_sided.correlation(later, sooner), REFUTED, REFUTED),
        Test("noise", of, "correlation of two weights", two_sided.correlation(many[:, 1:], many[:, :-1]), REFUTED, REFUTED),
    ]


def _bounds(
    of: str, scores: np.ndarray, who: np.ndarray, mechanism: Mechanism, claim: Scores, delta: float, confidence: float
) -> tuple[Result, list[dict[str, Any]]]:
    """Count the errors at two thresholds that the claim alone chose: for ε at δ, and for the curve."""
    inside, out = scores[who], scores[~who]
    half = len(scores) // 2
    best, middle = (planned(claim, half, half, confidence, at) for at in (delta, None))
    curve = claim.curve()
    at_best, at_middle = (counts_of(inside, out, plan.threshold) for plan in (best, middle))
    bounds = at_best.bounds(confidence)
    central = at_middle.bounds(confidence)
    tests = [
        of_counts("canaries", of, "excess over the claimed ε, threshold for δ", at_best, curve, threshold=best.threshold),
        of_counts("canaries", of, "excess over the claimed ε, threshold for μ", at_middle, curve, threshold=middle.threshold),
    ]
    perfect = Counts(half, half, 0, 0).bounds(confidence).epsilon(delta)
    row = {
        "setting": of,
        "q": mechanism.q,
        "sigma": mechanism.sigma,
        "steps": mechanism.steps,
        "delta": delta,
        "claimed": claim.epsilon(delta),
        "inside": at_best.inside,
        "out": at_best.out,
        "false_negatives": at_best.fn,
        "false_positives": at_best.fp,
        "threshold": best.threshold,
        "lower_bound": bounds.epsilon(delta),
        "lower_bound_95": at_best.bounds(SECOND).epsilon(delta),
        "expected": best.expected,
        "perfect_attack": perfect,
        "mu": max(0.0, central.mu),
        "epsilon_of_mu": gaussian.epsilon_of(central.mu, delta),
        "family": family_epsilon(central, mechanism, delta),
    }
    ordered = np.sort(np.concatenate([inside, out]))[:: max(1, len(scores) // POINTS)]
    roc = [
        {
            "setting": of,
            "false_positives": float((out > t).mean()),
            "true_positives": float((inside > t).mean()),
            "kind": "scores",
        }
        for t in ordered
    ]
    _, fpr, fnr = claim.rates()
    roc += [
        {"setting": of, "false_positives": float(x), "true_positives": float(1 - y), "kind": "claimed"}
        for x, y in list(zip(fpr, fnr, strict=True))[:: max(1, len(fpr) // POINTS)]
    ]
    for kind, x, y in (
        ("evaluated", at_best.fp / at_best.out, 1 - at_best.fn / at_best.inside),
        ("bound", bounds.fpr, 1 - bounds.fnr),
    ):
        roc.append({"setting": of, "false_positives": x, "true_positives": y, "kind": kind})
    return Result(tests, [row]), roc


def _one_run(of: str, scores: np.ndarray, who: np.ndarray, claim: Scores, row: dict[str, Any], confidence: float) -> list[Test]:
    """Guess the coins of the first run: the highest scores are in, the lowest out. This needs no claim about other canaries."""
    order = np.argsort(scores)
    half = GUESSES // 2
    right = int(who[order[-half:]].sum() + (~who[order[:half]]).sum())
    count = len(scores)
    claimed = claim.epsilon(FEW)
    most = max(
        gaussian.mu_of(epsilon, delta)
        for delta, epsilon in zip(DELTAS, (e for _, e in claim.curve()), strict=True)
        if epsilon > 0
    )
    level = 1 - confidence
    mu = one_run.mu(count, GUESSES, right, level)
    row |= {
        "one_run_guesses": GUESSES,
        "one_run_right": right,
        "one_run_delta": FEW,
        "one_run_claimed": claimed,
        "one_run": one_run.epsilon(count, GUESSES, right, FEW, level),
        "one_run_mu": mu,
        "one_run_f_dp": gaussian.epsilon_of(mu, FEW),
    }
    p = one_run.p_value(count, GUESSES, right, FEW, claimed)
    p_mu = smallest_level(lambda level: one_run.is_refuted(count, GUESSES, right, level, most))
    found = Found(float(right), GUESSES / 2, 1.0, p / 2, GUESSES)
    found_mu = Found(float(right), GUESSES / 2, 1.0, p_mu / 2, GUESSES)
    return [
        Test("one run", of, "right guesses, against ε at δ = 1e-5", found, CONSISTENT, REFUTED),
        Test("one run", of, "right guesses, against the claimed curve (f-DP)", found_mu, CONSISTENT, REFUTED),
    ]


def _over_steps(
    of: str,
    scores: np.ndarray,
    who: np.ndarray,
    checkpoints: list[int],
    mechanism: Mechanism,
    delta: float,
    confidence: float,
) -> list[dict[str, Any]]:
    """Return bound and claim after so many steps, from the same runs; each bound holds by itself."""
    rows = []
    half = len(who) // 2
    for at, step in enumerate(checkpoints):
        so_far = Mechanism(mechanism.q, mechanism.sigma, step)
        claim = Scores.of(so_far)
        best = planned(claim, half, half, confidence, delta)
        counts = counts_of(scores[at][who], scores[at][~who], best.threshold)
        rows.append(
            {
                "setting": of,
                "step": step,
                "claimed_rdp": so_far.epsilon(delta),
                "claimed": claim.epsilon(delta),
                "lower_bound": counts.bounds(confidence).epsilon(delta),
                "expected": best.expected,
                "perfect_attack": Counts(half, half, 0, 0).bounds(confidence).epsilon(delta),
            }
        )
    return rows
