"""`try` writes a paper for a folder of pictures to own/, all of it or nothing, and deletes it with all copies."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from copied import ROOT, copy_configuration, copy_project
from PIL import Image

from dpvision import plan
from dpvision.errors import UserError
from dpvision.own_pictures import try_folder as trying
from dpvision.own_pictures.paper import delta_for
from dpvision.own_pictures.remove import copies_of, listing, remove
from dpvision.own_pictures.try_folder import duration, try_folder
from dpvision.plan import own
from dpvision.plan.reading import read_yaml
from dpvision.reporting.kinds import by_class
from dpvision.reporting.tables import shown_panels


def picture(file: Path, seed: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (12, 20, 3), np.uint8)).save(file)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Return a folder of 30 pictures of two classes."""
    for i in range(15):
        picture(tmp_path / "My Pets/cat" / f"{i:02}.png", i)
        picture(tmp_path / "My Pets/dog" / f"{i:02}.png", 100 + i)
    return tmp_path / "My Pets"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    copy_configuration(tmp_path / "project")
    return tmp_path / "project"


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder, and its empty folders."""
    found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    return found | {
        f"{path.relative_to(folder)}/": b"" for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())
    }


def own_plan(project: Path, *papers: str) -> plan.Plan:
    return plan.load(own.settings_for(papers), project)


def said(folder: Path, project: Path, name: str | None = None, **options: object) -> str:
    return "\n".join(try_folder(folder, project, name, **options))


def test_try_writes_into_own_and_nothing_else_of_the_configuration(pets, project):
    before = files_in(project / "config")
    text = said(pets, project, imagenet="no")
    assert files_in(project / "config") == before
    assert sorted(files_in(project)).count("results/data/raw/my_pets/pictures.zip") == 1
    assert text.endswith("snakemake my_pets --cores all")
    planned = own_plan(project, "my_pets")
    assert {*planned.artifacts} == {"my_pets_table", "my_pets_classes", "my_pets_figure"}
    assert planned.folders == {"my_pets": str(pets)}
    assert (planned.own, planned.results) == ({"my_pets"}, "results/own")


def test_what_try_says_of_the_folder_and_of_privacy(pets, project):
    shutil.copy(pets / "cat/00.png", pets / "cat/again.png")
    for name in ("dog/phone.heic", "notes.txt"):
        (pets / name).write_bytes(b"x")
    (pets / "bird").mkdir()
    for i in range(3):
        picture(pets / f"fox/{i}.png", 200 + i)
    picture(pets / "owl/0.png", 300)
    text = said(pets, project)
    for words in (
        "  cat: 13 and 3",
        "cat/00.png = cat/again.png",
        "kinds that are not read; save them as PNG or JPEG: dog/phone.heic",
        "passed over: notes.txt",
        "left out: bird",
        "fewer than 10 pictures, of which no accuracy says much: fox, owl",
        "without a picture to test with: owl",
        "copied: packed into results/data/raw/my_pets",
        "try --remove my_pets",
        "MobileNetV2 has seen ImageNet",
        "--imagenet no",
        "δ = 1e-05: a power of ten, at most 1e-5 and at most 1/(100 N)",
        "5 searches and 15 trainings: ",
    ):
        assert words in text
    assert text.count("cat/again.png") == 1
    assert "ImageNet" not in said(pets, project, "other", imagenet="no")


def test_titles_say_each_thing_once(pets, project):
    said(pets, project)
    labels = own_plan(project, "my_pets").labels
    table = labels["my_pets_table"]
    assert table["datasets"] == {"my_pets_seen": "my_pets"}
    assert "my_pets" not in table["title"]
    assert "my_pets" in table["paper"]
    assert "my_pets" in labels["my_pets_figure"]["title"]


def test_the_table_by_class_says_where_none_is_tested(pets, project, tmp_path):
    said(pets, project)
    planned = own_plan(project, "my_pets")
    spec = planned.artifacts["my_pets_classes"]
    files = [tmp_path / name / "classes.csv" for cell in spec["cells"] for name in cell["work"]["by_class"].values()]
    for file in files:
        file.parent.mkdir()
        file.write_text("class,examples,right\ncat,3,2\ndog,0,0\n")
    frame = by_class.frame(spec, {"classes": [str(file) for file in files]})
    (panel,) = shown_panels(frame, spec, planned.labels["my_pets_classes"], by_class.DECIMALS)
    rows = {row[0]: row[1:] for row in panel.rows}
    assert "66.7" in rows["cat"][0]
    assert set(rows["dog"]) == {"no test picture"}


def test_pictures_of_imagenet_are_refused_and_leave_nothing(pets, project):
    before = files_in(project)
    refusal = r"my_pets has pictures of imagenet .* on which the network of the weights mobilenet_v2 was trained"
    with pytest.raises(UserError, match=rf"(?s){refusal}.*Nothing was written"):
        try_folder(pets, project, imagenet="yes")
    assert files_in(project) == before


def fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["pack_pictures", "file_digest", "_cost_lines"])
def test_a_try_that_fails_leaves_what_was_there(pets, project, monkeypatch, step):
    before = files_in(project)
    with monkeypatch.context() as patch:
        patch.setattr(trying, step, fail)
        with pytest.raises(OSError, match="No space"):
            try_folder(pets, project)
    assert files_in(project) == before
    said(pets, project)
    before = files_in(project)
    picture(pets / "cat/new.png", 999)
    monkeypatch.setattr(trying, step, fail)
    with pytest.raises(OSError, match="No space"):
        try_folder(pets, project)
    assert files_in(project) == before


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda pets: (pets / "cat/x.png").write_bytes(b"no picture"), r"cat/x\.png \(no picture\)"),
        (lambda pets: os.mkfifo(pets / "cat/x.png"), r"cat/x\.png \(no file\)"),
        (lambda pets: picture(pets / "cat/deep/x.png", 1), r"cat/deep/x\.png lies too deep: put it into cat/"),
        (lambda pets: [file.unlink() for file in pets.glob("*/*[1-9].png")], "too few: bring 10 or more"),
    ],
)
def test_a_refused_folder_leaves_nothing(pets, project, fault, says):
    before = files_in(project)
    fault(pets)
    with pytest.raises(UserError, match=says):
        try_folder(pets, project)
    assert files_in(project) == before


def test_a_second_try_replaces_or_says_that_it_is_up_to_date(pets, project):
    said(pets, project)
    first = files_in(project)
    assert "up to date" in said(pets, project)
    assert files_in(project) == first
    paper = project / "own/my_pets/paper.yaml"
    changed = paper.read_text().replace("120", "240")
    paper.write_text(changed)
    picture(pets / "cat/new.png", 999)
    text = said(pets, project)
    assert "was replaced" in text
    assert "FILE.old" in text
    assert paper.with_name("paper.yaml.old").read_text() == changed
    (before,) = [line for line in first["own/my_pets/datasets.yaml"].decode().splitlines() if "pictures.zip" in line]
    assert before not in (project / "own/my_pets/datasets.yaml").read_text()
    assert own_plan(project, "my_pets").of("data")


@pytest.mark.parametrize("file", own.FILES)
def test_what_was_deleted_by_hand_comes_back_with_try_or_goes(pets, project, file):
    said(pets, project)
    (project / "own/my_pets" / file).unlink()
    with pytest.raises(UserError, match=rf"own/my_pets/{file}.*missing.*--remove my_pets"):
        own_plan(project, "my_pets")
    said(pets, project, "my_pets")
    own_plan(project, "my_pets")
    (project / "own/my_pets" / file).unlink()
    remove(copies_of("my_pets", project), project)
    assert "own/my_pets" not in " ".join(files_in(project))


def test_names_of_others_are_refused(pets, project, tmp_path):
    said(pets, project, "pets")
    shutil.copytree(pets, tmp_path / "Others")
    with pytest.raises(UserError, match=r"own/pets is of another folder, .*--name.*--remove pets"):
        try_folder(tmp_path / "Others", project, "pets")
    for name, place in {
        "cifar10": "config/datasets.yaml",
        "scalenorm": "config/papers/scalenorm",
        "table1": "config/papers/scalenorm/paper.yaml",
        "search": "a rule",
        "pets_seen": "own/pets",
        "pets_table": "own/pets",
    }.items():
        with pytest.raises(UserError, match=f"{name}: .*{place}.* has this name; say another"):
            try_folder(pets, project, name)
    with pytest.raises(UserError, match="small letters"):
        try_folder(pets, project, "../pets")


def test_copies_of_pictures_and_own_papers_are_their_owners_alone(pets, project):
    before = os.umask(0o022)
    try:
        said(pets, project)
    finally:
        os.umask(before)
    private = [project / "own", project / "results/data/raw/my_pets"]
    private += [*(project / "own").rglob("*"), *(project / "results/data/raw/my_pets").rglob("*")]
    rights = {path: stat.S_IMODE(path.stat().st_mode) for path in private}
    assert {path for path, mode in rights.items() if mode != (0o700 if path.is_dir() else 0o600)} == set()
    assert stat.S_IMODE((project / "results/data/raw").stat().st_mode) == 0o755


def test_remove_lists_and_deletes_all_copies_and_nothing_else(pets, project):
    said(pets, project, "pets")
    said(pets, project, "pets2")
    hexes = "0123456789ab"
    of_pets = [f"results/data/prepared/pets-{hexes}/train_images.npy", f"results/data/features/pets_seen-{hexes}/x.npy"]
    of_pets += [
        f"results/own/runs/pets_seen-linear-eps1-seed0-{hexes}/weights.safetensors",
        "results/own/tables/pets_table.csv",
    ]
    of_pets += [f"results/data/logs/prepare/pets-{hexes}.log", "results/own/plan/pets_figure.json"]
    of_pets += [
        f"results/own/studies/pets_seen-linear-nonprivate-{hexes}/best.json",
        f"results/own/logs/train/pets_seen-{hexes}.log",
    ]
    of_others = [file.replace("pets", "pets2") for file in of_pets] + [
        "results/data/raw/cifar10/x.bin",
        "results/tables/table1.csv",
    ]
    for file in [*of_pets, *of_others]:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_bytes(bytes(1000))
    copies = copies_of("pets", project)
    text = "\n".join(listing(copies, project))
    for part in ("own/pets:", "results/data/raw/pets:", "results/own/runs/pets_seen-linear", "1.0 kB", "together"):
        assert part in text
    remove(copies, project)
    assert not [file for file in files_in(project) if "pets" in file.replace("pets2", "")]
    assert set(of_others) <= set(files_in(project))
    assert list(own_plan(project, "pets2").papers) == ["pets2"]
    assert pets.is_dir()


@pytest.mark.parametrize("name", ["cifar10", "scalenorm", "data", "raw", "nobody", "../x", "."])
def test_remove_deletes_nothing_of_the_projects_own(project, name):
    (project / "results/data/raw/cifar10").mkdir(parents=True)
    before = files_in(project)
    with pytest.raises(UserError):
        copies_of(name, project)
    assert files_in(project) == before


def test_a_network_from_scratch_stands_beside_if_asked(pets, project):
    assert "30 trainings: " in said(pets, project, from_scratch=True)
    assert "&id" not in (project / "own/my_pets/paper.yaml").read_text()  # for people to change


@pytest.mark.parametrize(
    ("count", "delta"), [(33, 1e-5), (999, 1e-5), (1000, 1e-5), (1001, 1e-6), (50_000, 1e-7), (1_000_000, 1e-8)]
)
def test_delta_is_at_most_a_hundredth_of_one_in_n(count, delta):
    assert delta_for(count) == delta
    assert delta * count <= 0.01 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(20, "less than a minute"), (150, "about 2 minutes"), (631_020, "about 7 days"), (9000, "about 2 hours")],
)
def test_a_time_is_said_in_its_unit(seconds, words):
    assert duration(seconds) == words


def dpvision(project: Path, *words: str) -> subprocess.CompletedProcess:
    """Run a command in the project."""
    path = {"PYTHONPATH": str(ROOT / "workflow/scripts")}
    return subprocess.run(
        [sys.executable, "-m", "dpvision", *words], cwd=project, env=os.environ | path, capture_output=True, text=True
    )


@pytest.mark.slow
def test_snakemake_and_its_jobs_find_the_paper_by_its_name(pets, tmp_path):
    copy_project(tmp_path / "whole")
    said(pets, tmp_path / "whole", "pets")
    command = [sys.executable, "-m", "snakemake", "pets", "--until", "prepare", "--cores", "1"]
    made = subprocess.run(command, cwd=tmp_path / "whole", capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (arrays,) = (tmp_path / "whole/results/data/prepared").glob("pets-*/train_images.npy")
    assert stat.S_IMODE(arrays.stat().st_mode) == 0o600
    assert stat.S_IMODE(arrays.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "whole/results/plan").exists()
    command = [sys.executable, "-m", "snakemake", "archive", "--cores", "1", "--config", "scale=own"]
    refused = subprocess.run(command, cwd=tmp_path / "whole", capture_output=True, text=True)
    assert "own_leaves=" in refused.stderr.splitlines()[-1]
    assert not (tmp_path / "whole/results/data/features").exists(), "it is refused before the first job"


@pytest.mark.slow
def test_the_commands_find_the_paper_and_remove_it(pets, project):
    tried = dpvision(project, "try", str(pets), "--imagenet", "no")
    assert "snakemake my_pets --cores all" in tried.stdout, tried.stderr
    planned = dpvision(project, "plan", "my_pets")
    assert "scale own" in planned.stdout, planned.stderr
    assert "my_pets_table" in planned.stdout
    assert "in own/: my_pets" in dpvision(project, "plan", "table1").stdout
    removed = dpvision(project, "try", "--remove", "my_pets")
    assert "deleted" in removed.stdout, removed.stderr
    assert "there is no such paper" in dpvision(project, "try", "--remove", "my_pets").stderr
    assert read_yaml(project, "config/config.yaml").content["papers"] == ["scalenorm"]
