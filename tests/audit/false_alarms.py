"""Right engines under audit, one a seed: how many are called wrong, against what the confidence allows.

    python tests/audit/false_alarms.py 200

Each is audited by coins, a few steps of pairs, and the noise and canaries of one run, on the smallest of all networks.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable

import torch

from dpvision.audit import designs
from dpvision.audit.judge import Test, judged
from dpvision.audit.subject import Subject, engine_run
from dpvision.plan import audits

CONFIDENCES = (0.999, 0.95, 0.8)
PAIRED = 100  # steps in each of two worlds


def tests_of(seed: int) -> list[Test]:
    """Return what the designs with chance in them find of a right engine."""
    model = audits.engine_audit([])["networks"][0]["model"]
    subject = Subject({**engine_run(model), "seed": seed})
    return (designs.coins(subject) + designs.pairs(subject, PAIRED) + designs.canaries(subject, "right", 1, 0.999)).tests


def verdicts(seeds: Iterable[int], confidences: Iterable[float] = CONFIDENCES) -> dict[float, Counter[str]]:
    """Return how often each verdict is given at each confidence."""
    found = [tests_of(seed) for seed in seeds]
    return {confidence: Counter(judged(tests, confidence)[0] for tests in found) for confidence in confidences}


def main(count: int) -> None:
    torch.set_num_threads(1)
    begun = time.monotonic()
    for confidence, said in verdicts(range(count)).items():
        others = ", ".join(f"{many} {verdict}" for verdict, many in sorted(said.items()))
        print(f"{confidence:.1%}: {others}; at most {(1 - confidence) * count:.1f} of {count} expected not to be consistent")
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
