"""Verdicts on made-up results whose truth is known: how often they are right, wrong and undecided.

    python benchmarks/made_up_verdicts.py      -> results/benchmarks/made_up_verdicts.md

A world has n seeds, with effects of a mean, the truth, and a standard deviation of 1. The sentence says "above 0". It is true
where the truth is above 0; where the truth is exactly 0, each of both verdicts is wrong.
"""

from pathlib import Path

import numpy as np

from dpvision.files import write_text
from dpvision.reporting.power import distance, least_effect, risk_of_chosen, spread_of, with_power
from dpvision.reporting.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED, critical, estimate, verdict

OUT = Path(__file__).parents[1] / "results" / "benchmarks"
ABOVE = {"above": 0.0, "below": None, "about": None}
SEEDS = (3, 5, 10, 20)
TRUTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
WORLDS = 4000


def shares(truth: float, n: int, printed: float | None = None, worlds: int = WORLDS) -> dict[str, float]:
    """Return how often each verdict is given."""
    given = []
    for values in np.random.default_rng(n).normal(truth, 1.0, (worlds, n)).tolist():
        seen = estimate(values)
        assert seen is not None
        far = [distance(effect, ABOVE) for effect in (seen.effect, printed) if effect is not None]
        given.append(with_power(verdict(seen, ABOVE), far, spread_of(seen, n)))
    return {one: given.count(one) / worlds for one in (SUPPORTED, CONTRADICTED, UNDECIDED)}


def table() -> str:
    """Return the shares as Markdown, then what n seeds decide."""
    lines = ["| truth | n | effect in print | right | wrong | undecided |", "|" + " --- |" * 6]
    for truth in TRUTHS:
        for n in SEEDS:
            for printed in (None, truth) if truth else (None,):
                found = shares(truth, n, printed)
                right, wrong = (found[SUPPORTED], found[CONTRADICTED]) if truth else (0.0, 1 - found[UNDECIDED])
                said = "none" if printed is None else f"{printed:g}"
                lines.append(f"| {truth:g} | {n} | {said} | {right:.1%} | {wrong:.1%} | {found[UNDECIDED]:.1%} |")
    lines += ["", "| n | effect beyond which the interval decides | effect with 80 % power | risk of chosen seeds |"]
    lines.append("|" + " --- |" * 4)
    for n in (2, *SEEDS):
        lines.append(f"| {n} | {critical(n - 1) / n**0.5:.2f} | {least_effect(n):.2f} | {risk_of_chosen(n):.1%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    made = table()
    write_text(OUT / "made_up_verdicts.md", made)
    print(made)


if __name__ == "__main__":
    main()
