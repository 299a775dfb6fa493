"""The δ of a guarantee: the least that the accountants can count, and what a large one allows."""

# At 1e-12 the accountant by privacy random variables (PRV) says ε = 11.4 where Rényi accounting says 8. At 1e-13 it
# fails on some settings, and the others fail below. A whole training would then end without a ledger.
LEAST_DELTA = 1e-10

MOST_DELTA_TIMES_N = 0.01


def fault_of_delta(delta: float, examples: int) -> str | None:
    """Return what is wrong with a δ for N examples, or None: it must be one that accountants can count, and at most 1/N.

    Published values have one digit: De et al. have 8e-7 for N = 1,271,167, where 1/N is 7.87e-7. So 1/N to one digit will do.
    """
    if delta < LEAST_DELTA:
        careful = max(LEAST_DELTA, MOST_DELTA_TIMES_N / examples)
        return (
            f"must be at least {LEAST_DELTA:g}: the accountants cannot count a smaller one. "
            f"1/(100 N) = {careful:.2g} is small enough for N = {examples:,}"
        )
    most = 1 / examples
    if delta > max(most, float(f"{most:.0e}")):
        return f"must be at most 1/N = {most:.3g}"
    return None


def describe_large_delta(delta: float, examples: int) -> str | None:
    """Say in one sentence what a δ above 1/(100 N) allows.

    Args:
        delta: δ of a guarantee, as in `delta` of a ledger.
        examples: N, the number of training examples, as in `examples` of a ledger.

    Returns:
        The sentence, which begins with "δ N = " and has no full stop, or None if δ is at most 1/(100 N).
    """
    expected = delta * examples
    # 1e-5 times 1,000 is 0.010000000000000002
    if expected <= MOST_DELTA_TIMES_N * (1 + 1e-9):
        return None
    return (
        f"δ N = {expected:.2g}, above {MOST_DELTA_TIMES_N:g}: δ = {delta:g} alone would allow {expected:.2g} of the "
        f"N = {examples:,} examples to be revealed, on average"
    )
