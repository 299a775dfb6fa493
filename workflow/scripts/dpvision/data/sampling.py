"""Poisson sampling: the sampling that the accountants assume."""

import torch

from dpvision.secret import Source, uniform


class PoissonSampler:
    """A sampler that draws batches: each of `count` examples joins with probability `q`, by its own coin, whatever others do.

    `q` is expected batch / N, two declared constants, and never 1 / number of batches: rounded to whole batches
    (as by a loader's length) it is another q than the accountant's, and one that changes with the data. Batches
    differ in size and may be empty; an empty one still gets its noise and counts as a step.

    All randomness is the generator's (on the CPU); who saves its state, if it has one, can resume to the same batches.
    """

    def __init__(self, count: int, q: float, generator: Source) -> None:
        if not 0 < q <= 1:
            raise ValueError(f"an example joins with probability q in (0, 1], not {q}")
        self.count = count
        self.q = q
        self.generator = generator

    def sample(self) -> torch.Tensor:
        """Return the indices of the examples that joined, ascending."""
        # float64: a float32 draw has 24 bits, and would round q to a multiple of 2^-24
        coins = uniform((self.count,), self.generator, torch.float64)
        return (coins < self.q).nonzero().squeeze(1)
