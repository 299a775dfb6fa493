"""Results on pictures of the user's own leave in no archive unless the settings say so."""

import numpy as np
import pytest
from copied import copy_configuration
from PIL import Image

from dpvision import plan
from dpvision.archive.contents import archive_spec
from dpvision.archive.pack import write_archive
from dpvision.errors import UserError
from dpvision.own_pictures.try_folder import try_folder
from dpvision.plan import own
from dpvision.reporting.keep import keep


@pytest.fixture
def project(tmp_path):
    """Return a project with a paper that `try` wrote for 30 pictures of two classes."""
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(15):
            Image.fromarray(random.integers(0, 256, (12, 20, 3), np.uint8)).save(tmp_path / f"pets/{name}/{i}.png")
    copy_configuration(tmp_path / "project")
    try_folder(tmp_path / "pets", tmp_path / "project", "pets", imagenet="no")
    return tmp_path / "project"


def test_archive_and_keep_of_own_pictures_are_refused_and_say_what_would_leave(project, tmp_path):
    planned = plan.load(own.settings_for(["pets"]), project)
    runs = planned.runs.values()
    plain = sum(run["budget"] is None for run in runs)
    searches = len(planned.of("search"))
    for refused in (
        lambda: write_archive(planned, tmp_path / "one.zip", project, project),
        lambda: keep(planned, project, tmp_path / "kept"),
    ):
        with pytest.raises(UserError) as error:
            refused()
        for words in (
            f"{plain} models trained without privacy, and {len(runs) - plain} whose noise",
            f"{len(runs)} trainings and {searches} searches",
            "names of the classes",
            "own_leaves=models_losses_and_classes",
        ):
            assert words in str(error.value)
    assert not (tmp_path / "one.zip").exists() and not (tmp_path / "kept").exists()


def test_settings_that_say_what_leaves_reach_the_job_that_packs(project, tmp_path):
    settings = own.settings_for(["pets"]) | {"own_leaves": "models_losses_and_classes"}
    planned = plan.load(archive_spec(plan.load(settings, project))["config"], project)
    with pytest.raises(UserError, match="neither a git checkout"):  # it is no project; nothing else is refused
        write_archive(planned, tmp_path / "one.zip", project, project)
