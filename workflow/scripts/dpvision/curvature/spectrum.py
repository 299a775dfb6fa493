"""Numbers that are read off a spectrum: of Ritz values and their weights, as lanczos gives them.

The paper gives a "condition number" below one and a "number of negative eigenvalues", but says of
neither how it was computed. So all that could be meant is here, each under its own name.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

ZERO = 10
"""Units of the dtype's rounding at the largest magnitude: a Ritz value within this has no sign."""


def zero_tolerance(values: ArrayLike, eps: float) -> float:
    """Return the magnitude below which a Ritz value counts as zero, neither as negative nor as positive.

    Each product is rounded by some eps times the largest magnitude, whatever Ritz value it is that comes
    of it; `eps` is that of the dtype the products were computed in. In trained convolutional networks
    the small Ritz values in float32 differed from those in float64 by 0.4 to 2 of these units; 10 leaves a
    margin, and in float32 is still 1.2e-6 of the largest. There are true zeros to catch: adding a constant
    to all logits, or to a group of channels before it is normalised, does not change the loss.
    """
    return float(ZERO * eps * np.max(np.abs(values)))


def summary(values: ArrayLike, weights: ArrayLike, eps: float) -> dict[str, float | int | None]:
    """Return the numbers of the paper's Hessian analysis, as far as the spectrum gives them.

    `ritz_negative_share` is of the Ritz values. It depends on the number of steps, since Lanczos spends
    its values on the ends of the spectrum. `ritz_negative_weight` estimates the share of all the Hessian's
    eigenvalues that are negative; being of a single start vector, it is a rough estimate.
    """
    values, weights = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)
    zero = zero_tolerance(values, eps)
    negative = values < -zero
    return {
        "lambda_max_lanczos": float(values.max()),
        "lambda_min_lanczos": float(values.min()),
        "ritz_negative": int(negative.sum()),
        "ritz_negative_share": float(negative.mean()),
        "ritz_negative_weight": float(weights[negative].sum()),
        "ritz_zero": int((np.abs(values) <= zero).sum()),
        "ritz_zero_tolerance": zero,
        **conditions(values, zero),
    }


def conditions(values: NDArray[np.float64], zero: float) -> dict[str, float | None]:
    """Return three readings of "condition number", and the Ritz value smallest in magnitude that the first rests on.

    The first is the textbook's, never below one. Its reciprocal and the other two can be such as the paper's
    2.1e-3. Zeros are left out: with them, the first would be infinite for every network. None where there
    is nothing to divide or to divide by.
    """
    magnitudes = np.abs(values)[np.abs(values) > zero]
    positive, negative = values[values > zero], values[values < -zero]
    smallest = float(magnitudes.min()) if magnitudes.size else None
    return {
        "ritz_smallest_magnitude": smallest,
        "condition_largest_to_smallest_magnitude": float(magnitudes.max()) / smallest if smallest else None,
        "condition_smallest_positive_to_largest": float(positive.min() / positive.max()) if positive.size else None,
        "condition_most_negative_to_largest": (
            float(-negative.min() / positive.max()) if positive.size and negative.size else None
        ),
    }


def density(values: ArrayLike, weights: ArrayLike, grid: ArrayLike, width: float) -> NDArray[np.float64]:
    """Return the spectral density at the points of the grid: each Ritz value a Gaussian of its weight and this width."""
    values, weights, grid = (np.asarray(array, dtype=float) for array in (values, weights, grid))
    distances = (grid[:, None] - values) / width
    return np.exp(-(distances**2) / 2) @ weights / (width * np.sqrt(2 * np.pi))
