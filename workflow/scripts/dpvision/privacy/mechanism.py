"""The mechanism of a run, read from its spec: job, ledger, search and verification all ask here."""

import itertools
from typing import Any

from dpvision.plan import space, specs
from dpvision.privacy.accounting import Mechanism, calibrate, most_steps


def mechanism_of(run: specs.Spec) -> Mechanism | None:
    """Return q, σ and the steps of a whole run; none without a budget. In a simulation, those of what is simulated.

    σ is what the authors' protocol or the budget says, or else the least for the budget; the steps are as many as recipe or
    protocol say, or else the most that the budget allows.
    """
    budget, q = run["budget"], specs.sampling_rate(run)
    if budget is None:
        return None
    if not specs.has_length(run):
        return Mechanism(q, budget["sigma"], most_steps(budget["epsilon"], budget["delta"], q, budget["sigma"]))
    steps = specs.step_count(run)
    sigma = run["protocol"]["sigma"] if "protocol" in run else budget.get("sigma")
    return Mechanism(q, sigma or calibrate(budget["epsilon"], budget["delta"], q, steps), steps)


def solved(run: specs.Spec) -> specs.Spec:
    """Return a run with the steps filled in that its budget allows, where it says no length."""
    mechanism = None if specs.has_length(run) else mechanism_of(run)
    return specs.with_solved_steps(run, mechanism.steps) if mechanism else run


def trial_mechanisms(search: specs.Spec, trials: list[dict[str, Any]]) -> list[Mechanism]:
    """Return q, σ and steps of each trial of a search, by its values: a searched batch or length has its own.

    Of a simulated trial they are those of what was done, as that is what its outcome spends.
    """
    runs = [solved(specs.with_values(search["run"], values)) for values in trials]
    found = [(mechanism_of(run), specs.simulated(run)) for run in runs]
    return [done(each, divisor) for each, divisor in found if each]  # each has one, or none has: such a search is not private


def done(simulated: Mechanism, divisor: int) -> Mechanism:
    """Return what a simulation did, by what it stands for; of a training that simulates nothing, `divisor` is 1."""
    return Mechanism(simulated.q / divisor, simulated.sigma / divisor, simulated.steps)


def possible_trials(search: specs.Spec) -> list[Mechanism]:
    """Return q, σ and steps of every trial that a search can draw, each once."""
    keys = [key for key in search["space"] if key in space.SPENDING]
    base = {key: space.examples(values)[0] for key, values in search["space"].items()}
    every = itertools.product(*(search["space"][key] for key in keys))
    return list(dict.fromkeys(trial_mechanisms(search, [{**base, **dict(zip(keys, some, strict=True))} for some in every])))


def possible_runs(run: specs.Spec, choices: dict[str, list[Any]]) -> list[Mechanism]:
    """Return q, σ and steps of a run for all values that a search could have found, each mechanism once.

    Args:
        run: The run, with the values that were found.
        choices: The values that the search could find, for each key that decides q, σ or steps.
    """
    found = {key: specs.value_at(run, key) for key in run.get("found_by", {})}
    # as planned, so that solved steps are solved for each batch
    planned = specs.with_values(specs.as_planned(run), found)
    every = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    mechanisms = [mechanism_of(specs.with_values(planned, values)) for values in every]
    return list(dict.fromkeys(mechanism for mechanism in mechanisms if mechanism))
