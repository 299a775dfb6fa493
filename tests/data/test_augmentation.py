"""A view is a crop of the mirrored image, perhaps turned; which crop is drawn evenly, for each view by itself."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpvision.data.augmentation import RATIOS, SHARES, Views, margin_of, mirrored
from dpvision.vision import torchvision


def drawing(views: int = 3, pad: int = 2, flip: float = 0.5, include_original: bool = False, seed: int = 0) -> Views:
    return Views(pad, flip, views, include_original, torch.Generator().manual_seed(seed))


def as_klause(rotate: float = 15.0, erase: float = 0.25, black: float = -9.0, **options: Any) -> Views:
    """Make the views of Klause et al.'s code for Tiny ImageNet, but for options."""
    options = {"pad": 4, "flip": 0.25, "views": 1, "include_original": False} | options
    generator = torch.Generator().manual_seed(0)
    return Views(**options, generator=generator, border="black", rotate=rotate, erase=erase, black=torch.tensor(black))


def one_at_a_time(images: np.ndarray, drawn: np.ndarray, pad: int) -> np.ndarray:
    """Make the views image by image and view by view, as De et al. describe it: pad, crop, turn."""
    height, width = images.shape[2:]
    made = []
    for image, of_image in zip(images, drawn[..., :3].astype(int), strict=True):
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
    views = drawing(views, pad, 0.5, original, seed=pad)
    drawn = views.draw(len(images))
    made = views.make(images, drawn)
    assert made.shape == (shape[0], views.views, *shape[1:])
    assert np.array_equal(made.numpy(), one_at_a_time(images.numpy(), drawn.numpy(), pad).reshape(made.shape))
    if original:
        assert torch.equal(made[:, 0], images)


def test_the_edge_is_mirrored_too():
    assert mirrored(torch.arange(-6, 10), 4).tolist() == [2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 1]


@pytest.mark.parametrize("flip", [0.0, 0.3, 0.5, 1.0])
def test_every_crop_is_as_likely_as_any_and_one_in_so_many_is_turned(flip):
    drawn = drawing(views=4, pad=2, flip=flip).draw(5000).flatten(0, 1).long()
    crops = torch.bincount((drawn[:, 0] + 2) * 5 + drawn[:, 1] + 2, minlength=25)  # both at once: neither tells of the other
    assert stats.chisquare(crops.numpy()).pvalue > 1e-4
    assert stats.binomtest(int(drawn[:, 2].sum()), len(drawn), flip).pvalue > 1e-4


def test_views_examples_and_steps_are_drawn_independently():
    views = drawing(views=4, pad=3)
    drawn = torch.stack([views.draw(20)[..., :3].flatten() for _ in range(3000)]).double()  # steps x everything drawn for one
    pairs = torch.corrcoef(drawn.T)[*torch.triu_indices(drawn.shape[1], drawn.shape[1], 1)]
    assert pairs.abs().max() * 3000**0.5 < stats.norm.isf(1e-4 / len(pairs))
    drawn -= drawn.mean(0)
    following = torch.corrcoef(torch.stack([drawn[:-1].flatten(), drawn[1:].flatten()]))[0, 1]
    assert abs(following) * drawn[1:].numel() ** 0.5 < 4


def test_the_original_is_the_first_view_alone():
    drawn = drawing(views=3, include_original=True).draw(500)
    assert (drawn[:, 0] == 0).all()
    assert stats.binomtest(int(drawn[:, 1:, 2].sum()), 1000, 0.5).pvalue > 1e-4


def test_an_empty_batch_has_no_views():
    assert drawing().make(torch.zeros(0, 3, 8, 8), drawing().draw(0)).shape == (0, 3, 3, 8, 8)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.uint8])
def test_views_are_of_the_images_own_type(dtype):
    assert drawing().make(torch.zeros(2, 1, 4, 4, dtype=dtype), drawing().draw(2)).dtype == dtype


# --- rotations, black borders, erased rectangles ---


@pytest.mark.parametrize("shape", [(64, 64), (33, 48)])
def test_a_rotation_is_torchvision_s_to_the_nearest_pixel_with_black_beside_the_image(shape):
    images, views = torch.rand(40, 3, *shape), as_klause(pad=0, flip=0.0, erase=0.0)
    drawn = views.draw(len(images))
    made = views.make(images, drawn)[:, 0]
    angles = torch.rad2deg(drawn[:, 0, 3]).tolist()
    turned = [
        torchvision.transforms.functional.rotate(image, angle, fill=-9.0) for image, angle in zip(images, angles, strict=True)
    ]
    same = (made == torch.stack(turned)).double().mean()
    assert same > 0.999  # but for places just between two pixels
    assert 0.02 < (made == -9).double().mean() < 0.2


def test_a_rotated_image_is_cut_to_its_size_before_a_crop_is_taken():
    """A view is torchvision's rotation and then its crop, with black around what is left."""
    images, views = torch.rand(40, 1, 32, 32), as_klause(flip=0.0, erase=0.0)
    drawn = views.draw(len(images))
    made = views.make(images, drawn)[:, 0]
    for image, (down, right, _, angle), ours in zip(images, drawn[:, 0, :4].tolist(), made, strict=True):
        turned = torchvision.transforms.functional.rotate(image, math.degrees(angle), fill=-9.0)
        padded = torch.nn.functional.pad(turned, (4, 4, 4, 4), value=-9.0)
        crop = padded[:, 4 + int(down) : 36 + int(down), 4 + int(right) : 36 + int(right)]
        assert (ours == crop).double().mean() > 0.995


def test_angles_are_even_up_to_the_largest_either_way():
    angles = torch.rad2deg(as_klause(rotate=15.0).draw(4000)[:, 0, 3])
    assert stats.kstest(angles.numpy(), stats.uniform(-15, 30).cdf).pvalue > 1e-4


def test_an_image_that_is_not_moved_is_the_image():
    images = torch.rand(3, 2, 9, 12)
    assert torch.equal(as_klause().make(images, torch.zeros(3, 1, 8))[:, 0], images)


def test_the_edge_around_a_crop_is_black():
    views = as_klause(rotate=0.0, erase=0.0)
    drawn = torch.zeros(1, 1, 8)
    drawn[0, 0, :2] = torch.tensor([1.0, -2.0])
    made = views.make(torch.ones(1, 1, 4, 5), drawn)[0, 0, 0]
    assert made.tolist() == [[-9, -9, 1, 1, 1]] * 3 + [[-9] * 5]


def test_one_view_in_so_many_loses_a_rectangle_to_the_mean():
    views = as_klause(rotate=0.0, pad=0, flip=0.0)
    made = views.make(torch.ones(4000, 1, 64, 64), views.draw(4000))[:, 0, 0]
    erased = made == 0
    assert stats.binomtest(int(erased.flatten(1).any(1).sum()), 4000, 0.25).pvalue > 1e-4
    for one in erased[erased.flatten(1).any(1)]:
        high, wide = one.any(1).sum().item(), one.any(0).sum().item()
        assert one.sum() == high * wide  # a rectangle
        assert SHARES[0] * 0.85 < high * wide / 64**2 < SHARES[1] * 1.05
        assert RATIOS[0] * 0.9 < high / wide < RATIOS[1] * 1.1
    everywhere = erased.double().mean(0)
    assert (everywhere.sum(0) > 0).all() and (everywhere.sum(1) > 0).all()  # to the edges
    torch.testing.assert_close(everywhere, everywhere.flip(0, 1), atol=0.02, rtol=0)


def test_an_original_is_neither_moved_nor_erased():
    images, views = torch.rand(200, 1, 8, 8), as_klause(views=2, include_original=True, erase=1.0)
    assert torch.equal(views.make(images, views.draw(200))[:, 0], images)


def test_a_cut_of_the_sample_changes_no_view():
    images, views = torch.rand(50, 3, 16, 16), as_klause(views=2)
    drawn = views.draw(50)
    parts = [views.make(*part) for part in zip(images.split(7), drawn.split(7), strict=True)]
    assert torch.equal(torch.cat(parts), views.make(images, drawn))


@settings(max_examples=40, deadline=None)
@given(side=st.integers(1, 8), margin=st.integers(0, 5), pad=st.integers(0, 2), seed=st.integers(0, 99))
def test_views_of_larger_images_are_crops_from_anywhere_in_them(side, margin, pad, seed):
    larger = torch.arange(2.0 * (side + margin) ** 2).reshape(2, 1, side + margin, side + margin)
    views = Views(pad, 0.5, 3, True, torch.Generator().manual_seed(seed), margin=margin)
    drawn = views.draw(2)
    made = views.make(larger, drawn)
    assert made.shape == (2, 3, 1, side, side)
    middle = margin // 2
    assert torch.equal(made[:, 0], larger[:, :, middle : middle + side, middle : middle + side])
    for image, of_image, found in zip(larger.numpy(), drawn[..., :3].int().tolist(), made.numpy(), strict=True):
        around = np.pad(image, ((0, 0), (pad, pad), (pad, pad)), mode="symmetric")
        for (down, right, turned), view in zip(of_image, found, strict=True):
            top, left = pad + middle + down, pad + middle + right
            assert min(top, left) >= 0
            assert max(top, left) <= margin + 2 * pad
            crop = around[:, top : top + side, left : left + side]
            assert np.array_equal(view, crop[:, :, ::-1] if turned else crop)


def test_every_crop_of_a_larger_image_is_drawn_as_often():
    views = Views(0, 0.5, 1, False, torch.Generator().manual_seed(0), margin=3)
    shifts = views.draw(20_000)[:, 0, 0].int() + 1
    assert stats.chisquare(shifts.bincount(minlength=4)).pvalue > 1e-3
    assert (margin_of(224, 1.2), margin_of(320, 1.2), margin_of(256, 1.2), margin_of(224, 1.0)) == (44, 64, 51, 0)
