"""The verdict on a claim: the one place that decides when it is supported, and the words that the page says it in."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from scipy import stats

LEVEL = 0.95
SUPPORTED, CONTRADICTED, UNDECIDED, NOT_HERE, NOT_RUN = VERDICTS = (
    *("supported", "contradicted", "undecided"),
    *("no verdict: stand-ins", "not run"),
)

RULES = """\
- **Pairs.** n counts the seeds that both sides of a comparison were trained with. The effect is the mean over them of the
  difference within a seed; for ratios, the geometric mean. Pairing is weak: a seed gives both networks their own initial
  weights, samples and noise, so it takes little of the chance away.
- **Interval.** 95 %, by Student's t over the n differences (of logarithms, for ratios): what other seeds could have given.
  It knows nothing of other data, code or settings, and each comparison has one of its own, so that one in twenty misses.
- **Of a comparison.** *Supported*: the whole interval lies where the sentence says, and where it gives a size, the effect has
  that size. *Contradicted*: the whole interval lies elsewhere, or misses the size. *Undecided*: neither, or no interval:
  of a single seed, or of seeds that all gave the very same, as whole epochs and few test images do. *Not run*: no pair.
- **Power.** A comparison is *undecided*, too, if n seeds have less than 80 % power, by the spread that was seen, for an effect
  as large as the one seen and for one as large as that in print: too few seeds that decide exaggerate. For the effect seen this
  asks for p of some 0.005 in place of 0.05. *Seeds to decide*: how many have that power, if effect and spread are as seen;
  behind a stroke, if the effect is that in print.
- **Stand-ins.** *No verdict: stand-ins*: the scale has another data set or another network in the place of the paper's, or
  another value of what tells the sides apart. What those did is shown, marked so, and decides nothing. What the paper leaves
  to a search is the paper's own with any value.
- **Of a line.** How accuracy, or the best value of a key, changes with a coordinate is the slope of a line of least squares
  for each seed. Where searches found the best values, one for each coordinate, the interval is that of the slope, by Student's
  t over what the points are off the line, and points count in the place of seeds where power is asked for.
- **Of a claim.** *Supported* if all of its comparisons are, *not run* if none was, *contradicted* if one of them is with an
  interval that is to miss once in twenty times the number of comparisons, so that many do not contradict by chance; else
  *undecided*. Where comparisons are readings of one statement, all of them have to contradict it.
- **Counts** of parameters are exact: equal or not."""


class Estimate(NamedTuple):
    """An effect, and between what it lies: no interval of one observation, or of several that are equal."""

    effect: float
    low: float | None
    high: float | None


def critical(free: int, among: int = 1) -> float:
    """Return how many standard errors an interval reaches to each side, by Student's t."""
    return float(stats.t.ppf(1 - (1 - LEVEL) / (2 * among), free))


def estimate(values: list[float], logarithmic: bool = False, among: int = 1) -> Estimate | None:
    """Estimate the mean, or with `logarithmic` the geometric mean of positive values; `among` so many all intervals hold."""
    if not values:
        return None
    if logarithmic:
        found = estimate([math.log(value) for value in values], among=among)
        return Estimate(*(None if end is None else math.exp(end) for end in found)) if found else None  # type: ignore[arg-type]
    mean = statistics.fmean(values)
    if max(values) - min(values) <= 1e-9 * max(map(abs, values)):
        return Estimate(mean, None, None)
    half = critical(len(values) - 1, among) * statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def of_line(points: Sequence[tuple[float, float]], among: int = 1) -> Estimate:
    """Return the slope of the line of least squares through points; no interval of two points, or of a perfect line."""
    found = stats.linregress(*zip(*points, strict=True))
    slope, error = float(found.slope), float(found.stderr)
    if len(points) < 3 or error <= 1e-9 * max(abs(slope), 1):
        return Estimate(slope, None, None)
    half = critical(len(points) - 2, among) * error
    return Estimate(slope, slope - half, slope + half)


def verdict(found: Estimate | None, claimed: dict[str, Any]) -> str:
    """Return the verdict on an estimate. `claimed`: above, below and about, each None where nothing is said; or exactly."""
    if found is None:
        return NOT_RUN
    if "exactly" in claimed:
        return SUPPORTED if found.effect == claimed["exactly"] else CONTRADICTED
    if found.low is None or found.high is None:
        return UNDECIDED
    above = -math.inf if claimed["above"] is None else claimed["above"]
    below = math.inf if claimed["below"] is None else claimed["below"]
    least, most = claimed["about"] or (-math.inf, math.inf)
    if found.high <= above or found.low >= below or found.high < least or found.low > most:
        return CONTRADICTED
    return SUPPORTED if above < found.low and found.high < below and least <= found.effect <= most else UNDECIDED


def combined(verdicts: Sequence[str], together: Sequence[str], how: str) -> str:
    """Return a claim's verdict by its comparisons', each alone and all together; `how`: all, or readings of one statement."""
    there = set(verdicts)
    if len(there) == 1:
        return verdicts[0]
    if there <= {NOT_RUN, NOT_HERE}:
        return NOT_HERE
    return CONTRADICTED if how == "all" and CONTRADICTED in together else UNDECIDED
