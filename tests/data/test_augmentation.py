"""A view is a crop of the mirrored image, perhaps turned; which crop is drawn evenly, for each view by itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpvision.data.augmentation import Views, make_views, mirrored


def drawing(views: int = 3, pad: int = 2, flip: float = 0.5, include_original: bool = False, seed: int = 0) -> Views:
    return Views(pad, flip, views, include_original, torch.Generator().manual_seed(seed))


def one_at_a_time(images: np.ndarray, drawn: np.ndarray, pad: int) -> np.ndarray:
    """Image by image, view by view, as De et al. describe it: pad, crop, turn."""
    height, width = images.shape[2:]
    made = []
    for image, of_image in zip(images, drawn, strict=True):
        padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad)), mode="symmetric")
        crops = [padded[:, pad + down : pad + down + height, pad + right : pad + right + width] for down, right, _ in of_image]
        made.append([crop[:, :, ::-1] if turned else crop for crop, (_, _, turned) in zip(crops, of_image, strict=True)])
    return np.array(made)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
    views=st.integers(1, 4),
    pad=st.integers(0, 11),  # more than the image too: its mirror image is mirrored again
    original=st.booleans(),
    layout=st.sampled_from([torch.contiguous_format, torch.channels_last]),
)
def test_views_are_those_of_pad_crop_and_turn(shape, views, pad, original, layout):
    images = torch.arange(float(np.prod(shape))).reshape(shape).contiguous(memory_format=layout)
    drawn = drawing(views, pad, 0.5, original, seed=pad).draw(len(images))
    made = make_views(images, drawn)
    assert made.shape == (shape[0], views, *shape[1:])
    assert np.array_equal(made.numpy(), one_at_a_time(images.numpy(), drawn.numpy(), pad).reshape(made.shape))
    if original:
        assert torch.equal(made[:, 0], images)


def test_the_edge_is_mirrored_too():
    assert mirrored(torch.arange(-6, 10), 4).tolist() == [2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 1]


@pytest.mark.parametrize("flip", [0.0, 0.3, 0.5, 1.0])
def test_every_crop_is_as_likely_as_any_and_one_in_so_many_is_turned(flip):
    drawn = drawing(views=4, pad=2, flip=flip).draw(5000).flatten(0, 1)
    crops = torch.bincount((drawn[:, 0] + 2) * 5 + drawn[:, 1] + 2, minlength=25)  # both at once: neither tells of the other
    assert stats.chisquare(crops.numpy()).pvalue > 1e-4
    assert stats.binomtest(int(drawn[:, 2].sum()), len(drawn), flip).pvalue > 1e-4


def test_no_two_views_or_examples_or_steps_know_of_each_other():
    views = drawing(views=4, pad=3)
    drawn = torch.stack([views.draw(20).flatten() for _ in range(3000)]).double()  # steps x everything drawn for one
    pairs = torch.corrcoef(drawn.T)[*torch.triu_indices(drawn.shape[1], drawn.shape[1], 1)]
    assert pairs.abs().max() * 3000**0.5 < stats.norm.isf(1e-4 / len(pairs))
    drawn -= drawn.mean(0)
    following = torch.corrcoef(torch.stack([drawn[:-1].flatten(), drawn[1:].flatten()]))[0, 1]
    assert abs(following) * drawn[1:].numel() ** 0.5 < 4


def test_the_original_is_the_first_view_alone():
    drawn = drawing(views=3, include_original=True).draw(500)
    assert (drawn[:, 0] == 0).all()
    assert stats.binomtest(int(drawn[:, 1:, 2].sum()), 1000, 0.5).pvalue > 1e-4


def test_of_nobody_there_is_no_view():
    assert make_views(torch.zeros(0, 3, 8, 8), drawing().draw(0)).shape == (0, 3, 3, 8, 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.uint8])
def test_views_are_of_the_images_own_type(dtype):
    assert make_views(torch.zeros(2, 1, 4, 4, dtype=dtype), drawing().draw(2)).dtype == dtype
