"""The machine that a job runs on."""

import torch


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def use_threads(threads: int) -> None:
    """As many as the job was given; the sums of a training depend on it in their last bits."""
    torch.set_num_threads(threads)
