"""The ledger: what a training spent, what it rests on, and what was not accounted for."""

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpvision.data.prepared import split_of
from dpvision.plan import space, specs
from dpvision.plan.delta import describe_large_delta
from dpvision.privacy.accounting import Mechanism, epsilon_of, prv_epsilon, selection_epsilon, selection_rdp
from dpvision.privacy.curve import Curve
from dpvision.privacy.mechanism import done, possible_runs, possible_trials, trial_mechanisms
from dpvision.training.schedules import follows_validation

FORMAT = 2
"""Number of a ledger's format, as its key `format` says it; it changes with every change of a number's meaning or of words.

Ledgers of format 1 have no number. There ε of a run that `stop` ended is that of the steps made, ε with a covered search
counts the run at the values that were found, and nothing is said of a large δ. `verify` computes them as they were written.
"""

NEIGHBOURS = "add or remove one training example"
SAMPLING = "Poisson: each example joins a step with probability q, by its own coin"
NOISE = "Gaussian of standard deviation sigma * C on the sum of clipped gradients, once a step"
REPEATABLE = (
    "the noise comes from a generator that the run's spec and seed start, so that the run can be repeated: "
    "a research result, not a release under differential privacy"
)
SECRET = (
    "coins, noise and views come from the operating system's entropy and were kept nowhere; the noise is a sum of Gaussians, "
    "and noisy sums are rounded to a grid, so that floating point does not give it away: as far as noise is concerned, "
    "these weights may be released; nobody can repeat the run"
)
RELEASED = (
    "that the weights alone are released (weights.safetensors, averaged.safetensors) with what this ledger and the spec say: "
    "metrics, history, provenance and logs were written without noise, and of a search's records nothing may leave"
)
PUBLIC = "that the number of examples and the constants that normalise images are public: known without these examples"
HELD_OUT = (
    "that the held-out examples are public: their loss steered {what} without noise. A recipe whose schedule follows none, and "
    "that does not stop by them, has no need of that"
)
UNCHOSEN = (
    "that this training was not chosen among others (seeds, recipes, models) by what they came to on private examples: the "
    "best of several spends what a search does"
)
SEARCHED = "that ε is the one with what the searches spent, epsilon_covered or epsilon_all_composed, and not this run's alone"
CHOSEN_BY = "that the examples that the search held out are public: it chose by them, without noise{trained}"
AND_TRAINED_ON = ", and this run trains on them"
SIMULATION = (
    "batch and noise are those of the training that is simulated divided by k, its steps are kept, so that every step has "
    "the same noise for its signal (Sander et al. 2023); the guarantee is that of what was done, which is next to none"
)
PICKS = "their accuracy picks the best epoch, which the metrics have beside the last step"
STEERS = f"their loss steers the learning rate and {PICKS}, both without noise"
STEERS_NOT = f"{PICKS}, without noise; their loss steers no learning rate"
NOTHING_CHOOSES = (
    "validation examples: there are none, nothing being held out, so that within this training no loss steers the learning "
    "rate and no accuracy picks an epoch"
)
CHOOSES = {  # by specs.chooser
    "validation": "validation examples: {choice}",
    "test": "test examples, none being held out: {choice}; so accuracies on them are too high",
    None: NOTHING_CHOOSES,
}
STOPS = "the validation loss, without noise, also decides after which epoch the training ends"
STOPPED = (
    "what the steps made alone would spend; no guarantee, as the data decided when the training ended: epsilon, for all of "
    "the planned steps, is the guarantee"
)
PUBLIC_START = (
    "the weights that it began with: taken as public; whatever data they were trained on is not protected by this run"
)
PUBLIC_FEATURES = (
    "the network that made the features: taken as public; an example's features are made of that example alone, and scaled by "
    "nothing of the others"
)
NOT_ACCOUNTED = [
    "training losses, accuracies and gradient norms in the history and the metrics: printed without noise",
    "the number of examples, the image normalisation and the test split: taken as public",
]
SEE_SEARCHES = "the choice made by the search: see searches"
READ = "the examples that the search held out and this run trains on: the search read them without noise"
TRAINED_ON = READ + ", so that no ε with the search in it holds for them"

COVERED = (
    "epsilon_covered: the search and this run, by composition, this run at the dearest values that the search could have "
    "found; the search is the best of a geometric number of independent trials with values drawn at random, from the operating "
    "system's entropy, and spends what the dearest trial and their mean number say (Papernot and Steinke 2022, theorem 2). "
    "Their number and all trials but the best stay secret: a release must leave out the search's own records. Accuracies on "
    "held-out examples count as public"
)
COMPOSED = (
    "epsilon_all_composed: all trials and this run as one adaptive composition{holds}; "
    "epsilon_if_random: the best of a geometric number of trials with this mean at the search's own level "
    "(Papernot and Steinke 2022), which would hold had each trial drawn its values at random"
)
HOLDS = ", which holds for this search"
HOLDS_NOT = ". No ε here holds for " + READ


def spent(spec: specs.Spec, mechanism: Mechanism | None, found: dict[str, dict], written: int = FORMAT) -> dict[str, Any]:
    """Return the ledger of a run.

    Args:
        spec: The run's complete spec.
        mechanism: q, σ and the steps that the run made, or None if the run has no budget.
        found: The best.json of each search that chose for the run, by the search's name.
        written: The format of the ledger.
    """
    if mechanism is None:
        return no_ledger()
    arguments = (mechanism, specs.step_count(spec), spec["recipe"]["clip"], spec["budget"], specs.training_count(spec))
    if (divisor := specs.simulated(spec)) > 1:
        return simulated_ledger(*arguments, divisor, written)
    searches = [_search_of(spec, study, best["privacy"], written) for study, best in found.items()]
    stops = bool(spec["recipe"].get("stop"))
    said = ledger(*arguments, searches, specs.chooser(spec), stops=stops, steers=_steers(spec), written=written)
    if not specs.is_repeatable(spec):
        del said["repeatable"]
        said["release"] = {"noise": SECRET, "needs": list(_needs(spec, searches))}
    said["not_accounted"] += _taken_as_public(spec)
    return said


def _search_of(spec: specs.Spec, study: str, privacy: dict[str, Any], written: int) -> dict[str, Any]:
    """Return the `privacy` part of a search's best.json, with what the ledger of a run needs to price the search.

    An older covered search drew its values from the published seed: no theorem covers that, and it is priced as any other.
    """
    search = {"study": study, **privacy, "trained_on": _trains_on_held_out(spec, privacy)}
    if written == 1 or "covered" not in search:
        return search
    choices = search["covered"].get("choices")
    if choices is None:
        del search["covered"]
    elif choices:
        search["possible_runs"] = possible_runs(spec, choices)
    return search


def choice_of(spec: specs.Spec) -> str:
    """Say what the examples that a run held out choose in it, or the test split in their place."""
    return describe_choice(specs.chooser(spec), _steers(spec))


def describe_choice(chooser: str | None, steers: bool) -> str:
    """Say what a split chooses in a run: `chooser` is the split or None, `steers` whether its loss steers the learning rate."""
    return CHOOSES[chooser].format(choice=STEERS if steers else STEERS_NOT)


def _steers(spec: specs.Spec) -> bool:
    """Tell whether a loss on held-out examples steers the learning rate."""
    return follows_validation(spec["recipe"]["schedule"]["name"])


def _taken_as_public(spec: specs.Spec) -> list[str]:
    """Return what a run has of others' data: the weights that it began with, the network that made its features."""
    return [PUBLIC_START] * ("start" in spec) + [PUBLIC_FEATURES] * (spec["data"].get("kind") == "features")


def _trains_on_held_out(run: specs.Spec, search: dict[str, Any]) -> bool:
    """Tell whether a run trains on examples that a search held out; `search` is the `privacy` part of its best.json.

    An older best.json does not say which these were. Then some are trained on if the run holds none out.
    """
    if "split" not in search:
        return not run["data"]["validation"]
    read, kept = (split_of(data)[1] for data in ({**run["data"], **search["split"]}, run["data"]))
    return bool(np.setdiff1d(read, kept).size)


def _needs(spec: specs.Spec, searches: list[dict]) -> Iterator[str]:
    """Yield what a release of weights needs beside secret noise."""
    yield from (RELEASED, PUBLIC, UNCHOSEN, *_taken_as_public(spec))
    steered = ["the learning rate"] * _steers(spec)
    steered += ["the end of the training"] * bool(spec["recipe"].get("stop"))
    if steered:
        yield HELD_OUT.format(what=" and ".join(steered))
    if searches:
        yield SEARCHED
        trained = any(search["trained_on"] for search in searches)
        yield CHOSEN_BY.format(trained=AND_TRAINED_ON if trained else "")


def ledger(
    mechanism: Mechanism,
    planned: int,
    clip: float,
    budget: dict,
    count: int,
    searches: list[dict],
    chooser: str | None = "validation",
    stops: bool = False,
    steers: bool = True,
    written: int = FORMAT,
) -> dict:
    """Return the ledger of a private run.

    Args:
        mechanism: q, σ and the steps that the run made.
        planned: The steps that were planned. The data decide when a run that may stop ends, so ε is that of all of them.
        clip: The clipping bound.
        budget: δ and the accountant, and ε where it is given.
        count: The number of training examples.
        searches: Of each search that chose for the run the `privacy` part of its best.json, with its name, and whether the
            run trains on what the search held out. A covered one also has the mechanisms that the run could have had.
        chooser: The split that chooses the best epoch, or None.
        stops: Whether a loss on held-out examples may end the run.
        steers: Whether such a loss steers the learning rate.
        written: The format of the ledger.
    """
    delta = budget["delta"]
    # never less than what was made, should a program ever make more
    counted_for = replace(mechanism, steps=max(planned, mechanism.steps)) if written > 1 else mechanism
    curve = _tighter(counted_for, delta)[2]
    target = {"target": budget["epsilon"]} if budget.get("epsilon") is not None else {}
    said = {
        "private": True,
        "epsilon": target | _epsilons(counted_for, delta),
        **({"curve": dict(curve)} if curve else {}),
        "delta": delta,
        "accountant": budget["accountant"],
        "neighbours": NEIGHBOURS,
        "sampling": SAMPLING,
        "noise": NOISE,
        "examples": count,
        "sampling_rate": mechanism.q,
        "noise_multiplier": mechanism.sigma,
        "clip": clip,
        "steps": {"planned": planned, "made": mechanism.steps},
        "searches": [_search(counted_for, delta, search) for search in searches],
        "not_accounted": [
            describe_choice(chooser, steers),
            *[STOPS] * stops,
            *NOT_ACCOUNTED,
            *[SEE_SEARCHES] * bool(searches),
            *[TRAINED_ON] * any(search.get("trained_on") for search in searches),
        ],
        "repeatable": REPEATABLE,
    }
    if written > 1:
        said["format"] = written
        if large := describe_large_delta(delta, count):
            said["large_delta"] = large
        if mechanism.steps < planned:
            said["stopped"] = {"epsilon": _epsilons(mechanism, delta), "meaning": STOPPED}
    return said


def _epsilons(mechanism: Mechanism, delta: float) -> dict[str, float]:
    """Return ε by each accountant that can promise one."""
    prv, pld, _ = _tighter(mechanism, delta)
    epsilons = {"rdp": mechanism.epsilon(delta), "prv": prv, "pld": pld}
    return {accountant: epsilon for accountant, epsilon in epsilons.items() if epsilon is not None}


@functools.lru_cache(maxsize=1024)  # seeds of one cell share it: an archive has it to verify many times over
def _tighter(mechanism: Mechanism, delta: float) -> tuple[float | None, float | None, dict[str, Any] | None]:
    """Return ε by privacy random variables and by the privacy loss, and what the curve says; None: no promise."""
    curve = Curve.of(mechanism, delta)
    found = (curve.epsilon(delta), curve.summary(delta)) if curve else (None, None)
    return prv_epsilon(mechanism, delta), *found


SIMULATED = (
    *("epsilon", "curve", "delta", "accountant", "examples", "sampling_rate", "noise_multiplier", "clip", "steps"),
    *("stopped", "large_delta"),
)
"""Keys of a ledger that are said of the training that a simulation stands for."""


def simulated_ledger(
    mechanism: Mechanism, planned: int, clip: float, budget: dict, count: int, divisor: int, written: int = FORMAT
) -> dict:
    """Return the ledger of a simulation: what the training that it stands for would spend, and what this one did."""
    simulated = ledger(mechanism, planned, clip, budget, count, searches=[], written=written)
    did = done(replace(mechanism, steps=planned) if written > 1 else mechanism, divisor)
    return {
        "private": False,
        "epsilon": None,
        "meaning": "simulated, not private: " + SIMULATION,
        "simulated": {"divisor": divisor, **{key: simulated[key] for key in SIMULATED if key in simulated}},
        "done": {
            "sampling_rate": did.q,
            "noise_multiplier": did.sigma,
            "epsilon": {"rdp": did.epsilon(budget["delta"])},
        },
        "repeatable": REPEATABLE,
        **({"format": written} if written > 1 else {}),
    }


def without_curve(ledger: dict) -> dict:
    """Return a ledger as it was written before it told the whole curve: of q, σ and steps, ε by two accountants."""
    epsilon = ledger["epsilon"]
    shorter = {**ledger, "epsilon": epsilon and {by: value for by, value in epsilon.items() if by != "pld"}}
    if "simulated" in shorter:
        shorter["simulated"] = without_curve(shorter["simulated"])
    return {key: value for key, value in shorter.items() if key != "curve"}


def no_ledger() -> dict:
    return {"private": False, "epsilon": None}


def price(search: specs.Spec, trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the `privacy` part of a search's best.json; `trials`: the values of each.

    Of a search without a budget there is nothing to say: a run that it chose for is not private either.
    A search that a theorem covers is charged for their mean number, and for every trial that it could have drawn. Its
    `choices`, of the keys that decide q, σ and steps, say which runs it could have led to. Searches without them drew their
    values from the published seed.
    """
    if search["run"]["budget"] is None:
        return {"private": False}
    data = search["run"]["data"]
    split = {"validation": data["validation"], "by": data.get("by", "permutation")}
    found = counted(trial_mechanisms(search, trials)) | {"split": split}
    if specs.is_covered(search):
        choices = {key: values for key, values in search["space"].items() if key in space.SPENDING}
        found["covered"] = {"mean_trials": search["trials"], "possible": counted(possible_trials(search)), "choices": choices}
    return found


def counted(trials: list[Mechanism]) -> dict[str, Any]:
    """Return q, σ and steps of trials, in `each` where they differ."""
    parts = [
        {"trials": count, "sampling_rate": trial.q, "noise_multiplier": trial.sigma, "steps": trial.steps}
        for trial, count in sorted(Counter(trials).items(), key=lambda part: (part[0].q, part[0].sigma, part[0].steps))
    ]
    return parts[0] if len(parts) == 1 else {"trials": len(trials), "each": parts}


def parts_of(privacy: dict[str, Any]) -> list[tuple[int, Mechanism]]:
    """Return how many trials had which mechanism, by the `privacy` part of a best.json."""
    return [
        (part["trials"], Mechanism(part["sampling_rate"], part["noise_multiplier"], part["steps"]))
        for part in privacy.get("each", [privacy])
    ]


def _search(run: Mechanism, delta: float, search: dict) -> dict:
    """Return what choosing by a search would cost, two ways; `search` is the `privacy` part of its best.json.

    A trial with values drawn at random is a mixture: at each order it spends at most what the dearest of them does.
    """
    parts = [(count, trial.rdp()) for count, trial in parts_of(search)]
    trial = np.maximum.reduce([rdp for _, rdp in parts])
    trials = search["trials"]
    if covered := search.get("covered"):
        dearest = np.maximum.reduce([possible.rdp() for _, possible in parts_of(covered["possible"])])
        mean = covered["mean_trials"]
        runs = np.maximum.reduce([possible.rdp() for possible in search.get("possible_runs", [run])])
        return {
            "study": search["study"],
            "mean_trials": mean,
            "epsilon_covered": epsilon_of(selection_rdp(dearest, mean) + runs, delta),
            "meaning": COVERED + (HOLDS_NOT if search.get("trained_on") else ""),
        }
    return {
        "study": search["study"],
        "trials": trials,
        "epsilon_all_composed": epsilon_of(sum(count * rdp for count, rdp in parts) + run.rdp(), delta),
        "epsilon_if_random": selection_epsilon(trial, trials, delta),
        "meaning": COMPOSED.format(holds="") + HOLDS_NOT if search.get("trained_on") else COMPOSED.format(holds=HOLDS),
    }
