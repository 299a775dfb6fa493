"""Examples are in memory once: what nobody else holds is taken, what is mapped from disk is copied."""

import warnings

import numpy as np
import torch

from dpvision.training.examples import Examples


def test_an_array_of_its_own_is_used_and_a_mapped_one_copied(tmp_path):
    images = np.arange(48, dtype=np.uint8).reshape(4, 3, 2, 2)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of arrays that must not be written to
        of_own, of_mapped = (Examples(a, np.arange(4), [0.0] * 3, [1.0] * 3, torch.device("cpu")) for a in (images, mapped))
    assert np.shares_memory(of_own.images.numpy(), images)
    assert not np.shares_memory(of_mapped.images.numpy(), mapped)
    assert torch.equal(of_own.images, of_mapped.images)
