"""The machine that a job runs on."""

import ctypes

import torch

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # options of glibc's mallopt


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def settle(threads: int) -> None:
    """Use as many threads as the job was given, on which a training's sums depend in their last bits; keep freed memory.

    What is freed after a step and asked for anew in the next is zeroed page by page, if the system has had it in between.
    """
    torch.set_num_threads(threads)
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        for option, size in ((TRIM_THRESHOLD, 2**30), (TOP_PAD, 2**26), (MMAP_THRESHOLD, 2**30)):
            mallopt(option, size)
