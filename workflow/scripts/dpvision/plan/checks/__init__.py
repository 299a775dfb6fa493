"""Checks of what is right in itself and wrong beside other values: each yields one line for each fault."""

from dpvision.plan.checks.artifacts import of_places
from dpvision.plan.checks.cells import of_cells
from dpvision.plan.checks.data import of_datasets, of_features, of_folders, of_weights
from dpvision.plan.checks.files import of_claims, of_files, of_left_out, of_overlays, of_parts, of_scale, of_settings
from dpvision.plan.checks.paper import of_paper
from dpvision.plan.checks.published import of_published, of_rows
from dpvision.plan.checks.searches import recipe_of_trials, split_of_trials
from dpvision.plan.checks.starts import cell_before, of_starts

__all__ = [
    "cell_before",
    "of_cells",
    "of_claims",
    "of_datasets",
    "of_features",
    "of_files",
    "of_folders",
    "of_left_out",
    "of_overlays",
    "of_paper",
    "of_parts",
    "of_places",
    "of_published",
    "of_rows",
    "of_scale",
    "of_settings",
    "of_starts",
    "of_weights",
    "recipe_of_trials",
    "split_of_trials",
]
