"""The cost of secret noise: a whole step with it, over the same step with repeatable noise.

    python benchmarks/secret_noise.py      -> results/benchmarks/secret_noise.json, .md

Coins and noise are drawn once a step, whatever its batch: the larger the batch, the less they are of a step. In each round
both kinds of noise have their turn, and ratios are taken within a round.
"""

import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpvision.data.sampling import PoissonSampler
from dpvision.files import write_json, write_text
from dpvision.privacy.fast import UNTIMED
from dpvision.provenance import processor
from dpvision.secret import Secret
from dpvision.training.examples import Examples
from dpvision.training.machine import device
from dpvision.training.step import Step
from networks import CLASSES, NETWORKS

OUT = Path(__file__).parents[1] / "results" / "benchmarks"
CASES = [("lenet", 64), ("resnet9", 64), ("wrn16-4", 64)]
PHYSICAL = 64
ROUNDS = 3


def steps_of(name: str, batch: int) -> dict[str, Step]:
    """Return the same step with both kinds of noise; all examples join it, so that each is as long."""
    place = device()
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (batch, *NETWORKS[name].shape), dtype=np.uint8)
    channels = NETWORKS[name].shape[0]
    examples = Examples(images, random.integers(0, CLASSES, batch), [0.5] * channels, [0.25] * channels, place)
    network = NETWORKS[name].build().to(place)
    repeatable = Step(
        network,
        torch.optim.SGD(network.parameters(), lr=0.0),
        examples,
        PoissonSampler(batch, 1.0, torch.Generator().manual_seed(0)),
        expected_batch=batch,
        physical_batch=PHYSICAL,
        clip=1.0,
        sigma=1.0,
        noise=torch.Generator(place).manual_seed(0),
        choices=dict(UNTIMED),
    )
    secret = replace(repeatable, sampler=PoissonSampler(batch, 1.0, Secret()), noise=Secret(place), choices=dict(UNTIMED))
    return {"repeatable": repeatable, "secret": secret}


def measure(name: str, batch: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the seconds of a step of each kind, and the median of the ratios within a round."""
    steps = steps_of(name, batch)
    for step in steps.values():
        step()
    times: dict[str, list[float]] = {kind: [] for kind in steps}
    for _ in range(rounds):
        for kind, step in steps.items():
            begun = time.perf_counter()
            step()
            if device().type == "cuda":
                torch.cuda.synchronize()
            times[kind].append(time.perf_counter() - begun)
    ratios = [secret / repeatable for secret, repeatable in zip(times["secret"], times["repeatable"], strict=True)]
    parameters = sum(p.numel() for p in steps["secret"].parameters)
    medians = {f"{kind}_seconds": round(statistics.median(found), 4) for kind, found in times.items()}
    return {"network": NETWORKS[name].label, "parameters": parameters, "batch": batch, **medians} | {
        "ratio": round(statistics.median(ratios), 3)
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as Markdown."""
    lines = ["| network | parameters | batch | repeatable, s | secret, s | ratio |", "|" + " --- |" * 6]
    lines += [
        f"| {row['network']} | {row['parameters']:,} | {row['batch']} | {row['repeatable_seconds']:.3f} | "
        f"{row['secret_seconds']:.3f} | {row['ratio']:.2f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    rows = [measure(*case) for case in CASES]
    about = {"device": processor(), "threads": torch.get_num_threads(), "torch": torch.__version__, "rounds": ROUNDS}
    write_json(OUT / "secret_noise.json", {"rows": rows, "machine": about})
    write_text(OUT / "secret_noise.md", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
