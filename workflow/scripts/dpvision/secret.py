"""Random numbers that nobody can repeat: from the operating system's cryptographic generator, and kept nowhere.

The system's generator is seeded with its entropy and is cryptographic itself (ChaCha20 on Linux). What it gave cannot be
drawn again, and says nothing of what it gives to others. PyTorch's generators are not of that kind: one on a CPU takes 32 bits
of its seed, and whoever has some of its numbers can work out all others.
"""

import os

import torch
from torch import Tensor

BITS = 52  # of a number: with a half added, each is exact in double precision, also next to 1
DRAWS = 4  # Gaussians that are summed into one
AT_ONCE = 2**18  # numbers that are drawn at once: more need memory, and are no faster
GRID = 2.0**-20  # of σ C, between two values of a noisy sum


class Secret:
    """A source of random numbers that has no state, so that none can be kept, guessed or put back."""

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)

    def uniform(self, *shape: int) -> Tensor:
        """Draw from (0, 1), in double precision, neither end among the numbers."""
        count = torch.Size(shape).numel()
        if not count:
            return torch.zeros(shape, dtype=torch.float64, device=self.device)
        bits = torch.frombuffer(bytearray(os.urandom(8 * count)), dtype=torch.int64).bitwise_and_(2**BITS - 1)
        return bits.to(self.device).double().add_(0.5).mul_(2.0**-BITS).view(shape)

    def gaussian(self, count: int) -> Tensor:
        """Draw from N(0, 1), each a sum of Gaussians, which hides the rounding of one (Holohan and Braghin 2021)."""
        return torch.special.ndtri(self.uniform(DRAWS, count)).sum(0) / DRAWS**0.5


Source = torch.Generator | Secret


def uniform(shape: tuple[int, ...], source: Source, dtype: torch.dtype | None = None) -> Tensor:
    """Draw numbers between 0 and 1; of a secret source always in double precision."""
    if isinstance(source, Secret):
        return source.uniform(*shape)
    return torch.rand(shape, dtype=dtype, generator=source, device=source.device)


def integers(low: int, high: int, shape: tuple[int, ...], source: Source) -> Tensor:
    """Draw whole numbers from `low` to the one before `high`."""
    if isinstance(source, Secret):
        return (low + (high - low) * source.uniform(*shape)).floor().long()
    return torch.randint(low, high, shape, generator=source, device=source.device)


def add_noise(sums: list[Tensor], scale: float, source: Secret) -> None:
    """Add N(0, scale²) to sums in place, and round what comes out to a grid, the same whatever was in the sums.

    A number of few digits has only so many neighbours: which values noise can reach from a sum tells of the sum (Mironov
    2012). Here sum and noise are added in double precision, where every place of the grid has many numbers that round to it.

    Args:
        sums: The clipped sums, one tensor per parameter, of any order in memory.
        scale: The noise's standard deviation, σ times the sensitivity of the sums.
        source: Where the noise comes from.
    """
    grid = GRID * scale
    for tensor in sums:
        numbers = tensor.reshape(-1)
        for part in numbers.split(AT_ONCE):
            noisy = part.double() + scale * source.gaussian(len(part))
            part.copy_((noisy / grid).round() * grid)
        if not tensor.is_contiguous():  # then the numbers above are a copy
            tensor.copy_(numbers.view(tensor.shape))
