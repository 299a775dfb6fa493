"""The mechanism of a run, read from its spec: job, ledger, search and verification all ask here."""

from dpvision.plan import specs
from dpvision.privacy.accounting import Mechanism, calibrate


def mechanism_of(run: specs.Spec) -> Mechanism | None:
    """Return q, σ and the steps of a whole run; none without a budget. In a simulation, those of what is simulated.

    σ is what the authors' protocol says, or else the least for the budget.
    """
    budget = run["budget"]
    if budget is None:
        return None
    q, steps = specs.sampling_rate(run), specs.step_count(run)
    sigma = run["protocol"]["sigma"] if "protocol" in run else calibrate(budget["epsilon"], budget["delta"], q, steps)
    return Mechanism(q, sigma, steps)
