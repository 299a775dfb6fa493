"""The mechanism of a run, read from its spec: job, ledger, search and verification all ask here."""

from dpvision.plan import specs
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
