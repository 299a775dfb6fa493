"""The numbers read off a spectrum are right, held against spectra small enough to do by hand."""

import numpy as np
import pytest

from dpvision.curvature.spectrum import density, summary, zero_tolerance

EPS = float(np.finfo(np.float32).eps)
VALUES = [-4.0, -1.0, -1e-9, 0.0, 0.5, 8.0]
WEIGHTS = [0.1, 0.2, 0.3, 0.2, 0.1, 0.1]


def test_negative_ritz_values_are_counted_without_those_that_rounding_may_have_made():
    numbers = summary(VALUES, WEIGHTS, EPS)
    assert numbers["ritz_negative"] == 2
    assert numbers["ritz_negative_share"] == pytest.approx(2 / 6)
    assert numbers["ritz_negative_weight"] == pytest.approx(0.3)
    assert numbers["ritz_zero"] == 2
    assert summary(VALUES, WEIGHTS, 1e-16)["ritz_negative"] == 3  # in double precision, -1e-9 is a number


def test_the_tolerance_goes_with_the_largest_magnitude_also_if_negative():
    assert zero_tolerance([-100.0, 1.0], 1e-7) == pytest.approx(1e-4)


def test_the_ends_of_the_spectrum_keep_their_signs():
    numbers = summary(VALUES, WEIGHTS, EPS)
    assert (numbers["lambda_max_lanczos"], numbers["lambda_min_lanczos"]) == (8.0, -4.0)
    assert numbers["ritz_smallest_magnitude"] == 0.5


def test_the_three_condition_numbers_differ():
    numbers = summary([-4.0, -0.25, 0.0, 0.5, 2.0], [0.2] * 5, EPS)
    assert numbers["condition_largest_to_smallest_magnitude"] == 16
    assert numbers["condition_smallest_positive_to_largest"] == 0.25
    assert numbers["condition_most_negative_to_largest"] == 2


def test_a_condition_number_without_its_numbers_is_none():
    positive = summary([1.0, 2.0], [0.5, 0.5], EPS)
    assert positive["condition_most_negative_to_largest"] is None
    assert positive["condition_largest_to_smallest_magnitude"] == 2
    negative = summary([-2.0, -1.0], [0.5, 0.5], EPS)
    assert negative["condition_smallest_positive_to_largest"] is None
    assert negative["condition_most_negative_to_largest"] is None
    zero = summary([0.0], [1.0], EPS)
    assert zero["ritz_zero"] == 1 and zero["ritz_smallest_magnitude"] is None
    assert zero["condition_largest_to_smallest_magnitude"] is None


def test_the_density_has_each_values_weight_around_it():
    grid = np.linspace(-6, 10, 4001)
    heights = density(VALUES, WEIGHTS, grid, 0.1)
    step = grid[1] - grid[0]
    assert heights.sum() * step == pytest.approx(1)
    assert heights[grid > 4].sum() * step == pytest.approx(0.1)
    assert heights[np.argmin(np.abs(grid - 8))] == pytest.approx(0.1 / (0.1 * np.sqrt(2 * np.pi)))
