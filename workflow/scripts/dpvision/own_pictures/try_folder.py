"""A folder of pictures becomes a paper in own/: all of it, or nothing."""

import contextlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dpvision import plan
from dpvision.data.datasets.folder import PACKED, Folder
from dpvision.data.picture_folders import FolderContents, check_layout, list_folder, pack_pictures, unreadable_pictures
from dpvision.data.pictures import in_words
from dpvision.errors import UserError
from dpvision.files import file_digest, replacing, rights
from dpvision.looking.estimate import Estimator, wall_seconds
from dpvision.looking.text import counted
from dpvision.own_pictures.paper import SIZE, as_yaml, delta_for, names_given, paper_files, split_counts
from dpvision.plan import own
from dpvision.plan.load import RULES
from dpvision.plan.reading import read_yaml

CLASSES_SHOWN = 20
FEW = 10  # pictures of a class, below which there is a warning
BEGINS = 5.0  # seconds until a job has imported PyTorch
WRITTEN, REPLACED, UP_TO_DATE = "written", "replaced", "up to date"


def try_folder(
    folder: Path,
    root: Path,
    name: str | None = None,
    *,
    from_scratch: bool = False,
    follow_links: bool = False,
    imagenet: str | None = None,
) -> list[str]:
    """Write the paper of a folder of pictures to own/, and a copy of the pictures to results/data.

    Args:
        folder: The user's folder.
        root: The project's folder.
        name: Name of the paper; None: made of the folder's name.
        from_scratch: Whether a network without public weights is trained, too.
        follow_links: Whether links out of the folder are followed.
        imagenet: Whether pictures of ImageNet are in the folder: yes, no, or None if nobody said.

    Returns:
        What there is to say, a line each; the command that trains is the last.

    Raises:
        UserError: The folder is no data set, a picture cannot be read, the name is taken, or the plan refuses the paper.
            Nothing was written then.
    """
    if not folder.is_dir():
        fault = "this is a file; name a folder of pictures" if folder.exists() else "there is no such folder"
        raise UserError(f"{folder}: {fault}")
    name = name or _name_from(folder)
    refuse_taken(name, root)
    _refuse_other_folder(name, folder, root)
    contents = _read_contents(folder, follow_links)
    with _copied(contents, folder, root / plan.DATA / "raw" / name) as packed:
        md5 = file_digest(packed, "md5")
        texts = paper_files(name, contents, md5, from_scratch, imagenet == "yes")
        texts["folders.yaml"] = as_yaml({name: str(folder.resolve())})
        with _in_place(texts, root / own.FOLDER / name) as state:
            train, test = split_counts(contents)
            lines = [*_state_lines(state, name), "", *_content_lines(Folder(packed, [3, SIZE, SIZE], test, True), contents)]
            lines += ["", *_privacy_lines(name, train, imagenet), "", *_cost_lines(name, root)]
    return [*lines, "", "To run it:", f"  snakemake {name} --cores all"]


def _name_from(folder: Path) -> str:
    """Return a name for the configuration, made of the folder's."""
    plain = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return plain if plain[:1].isalpha() else f"pictures_{plain}".rstrip("_")


def refuse_taken(name: str, root: Path) -> None:
    """Refuse a name that is none, or that would be given twice."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(f"{name}: a name has small letters, digits and underscores, and begins with a letter")
    taken = _shipped_names(root)
    for other in own.own_papers(root):
        if other != name:
            taken |= dict.fromkeys(names_given(other), f"{own.FOLDER}/{other}")
    for given in sorted(names_given(name)):
        if given in taken:
            needed = "" if given == name else f"it would need the name {given}, and "
            raise UserError(f"{name}: {needed}{taken[given]} has this name; say another one with --name")


def _shipped_names(root: Path) -> dict[str, str]:
    """Return the names that the project's own configuration gives, and where."""
    taken = dict.fromkeys(RULES, "a rule of the workflow")
    for file in ("datasets", "weights", "features"):
        taken |= dict.fromkeys(read_yaml(root, f"config/{file}.yaml").content or {}, f"config/{file}.yaml")
    for path in sorted((root / "config/papers").rglob("paper.yaml")):
        file = path.relative_to(root).as_posix()
        artifacts = (read_yaml(root, file).content or {}).get("artifacts", {})
        taken |= {path.parent.name: path.parent.relative_to(root).as_posix()} | dict.fromkeys(artifacts, file)
    return taken


def _refuse_other_folder(name: str, folder: Path, root: Path) -> None:
    """Refuse to replace a paper of another folder of pictures."""
    try:
        before = own.picture_folders([name], root).get(name)
    except UserError:  # there is none, or somebody deleted a part of it: it is written again
        return
    if before and before != str(folder.resolve()):
        raise UserError(
            f"{name}: {own.FOLDER}/{name} is of another folder, {before}. Say another name with --name, or delete what is "
            f"there: python -m dpvision try --remove {name}"
        )


def _read_contents(folder: Path, follow_links: bool) -> FolderContents:
    """Return what lies in the folder, after each picture was opened."""
    contents = list_folder(folder, follow_links)
    check_layout(contents, folder)
    split_counts(contents)
    if faults := unreadable_pictures(contents, folder):
        shown = [f"  {path} ({fault})" for path, fault in sorted(faults.items())[:20]]
        more = [f"  and {len(faults) - 20} more"] if len(faults) > 20 else []
        raise UserError("\n".join([f"{folder}: these cannot be read; mend them or take them away:", *shown, *more]))
    return contents


@contextlib.contextmanager
def _copied(contents: FolderContents, folder: Path, raw: Path) -> Iterator[Path]:
    """Yield a file with all pictures, which is put into the folder `raw` at the end; after an error nothing is left of it."""
    with _without_empty_folders(raw):
        raw.parent.mkdir(parents=True, exist_ok=True)
        with rights(raw, owner_alone=True), replacing(raw / PACKED) as beside:
            with open(beside, "wb") as file:
                pack_pictures(contents, folder, file)
            is_other = not (raw / PACKED).exists() or file_digest(raw / PACKED) != file_digest(beside)
            yield beside
            if is_other:
                (raw / "files.json").unlink(missing_ok=True)  # it proves the pictures that were there before


@contextlib.contextmanager
def _without_empty_folders(folder: Path) -> Iterator[None]:
    """After an error, take back the folder and those around it that were made meanwhile."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        for place in made:
            with contextlib.suppress(OSError):  # another process may use it by now
                place.rmdir()
        raise


@contextlib.contextmanager
def _in_place(texts: dict[str, str], place: Path) -> Iterator[str]:
    """Put the paper's folder into place while the block runs; after an error the one before is back.

    Files that differ are kept beside with the ending .old: somebody may have changed them.
    """
    existing = {file: _text_of(place / file) for file in texts}
    if existing == texts:
        yield UP_TO_DATE
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_without_empty_folders(place.parent))
        stack.enter_context(rights(place.parent, owner_alone=True))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=place.parent, prefix=".")))
        new, before = scratch / "new", scratch / "before"
        if place.exists():
            shutil.copytree(place, new)
        new.mkdir(exist_ok=True)
        for file, text in texts.items():
            if existing[file] not in (None, text):
                (new / file).rename(new / f"{file}.old")
            (new / file).write_text(text, encoding="utf-8")
        if place.exists():
            place.rename(before)
        new.rename(place)
        try:
            yield REPLACED if before.exists() else WRITTEN
        except BaseException as error:
            place.rename(new)
            if before.exists():
                before.rename(place)
            if isinstance(error, UserError):
                raise UserError(f"{error}\nNothing was written.") from None
            raise


def _text_of(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


def _state_lines(state: str, name: str) -> list[str]:
    """Say what was done with the paper's folder."""
    place = f"{own.FOLDER}/{name}"
    if state == UP_TO_DATE:
        return [f"{place} is up to date: the same pictures, the same paper."]
    if state == WRITTEN:
        return [f"{place} was written. It is yours to change; git ignores it."]
    return [
        f"{place} was replaced. What was there before in a file that changed is in FILE.old beside it.",
        f"Copies and results of other pictures that were there stay until: python -m dpvision try --remove {name}",
    ]


def _content_lines(data: Folder, contents: FolderContents) -> list[str]:
    """Say what lies in the folder: how many of each class, what is the same picture twice, what was passed over."""
    names = data.class_names
    train, test = (Counter(labels.tolist()) for labels in (data.train_labels, data.test_labels))
    drawn = "" if contents.is_split else " (a fifth of each class)"
    lines = [f"{train.total()} pictures to train on, {test.total()} to test with{drawn}, {len(names)} classes:"]
    lines += [f"  {name}: {train[place]} and {test[place]}" for place, name in enumerate(names[:CLASSES_SHOWN])]
    lines += [f"  and {len(names) - CLASSES_SHOWN} more classes"] * (len(names) > CLASSES_SHOWN)
    groups = {
        f"WARNING: classes of fewer than {FEW} pictures, of which no accuracy says much": [
            name for place, name in enumerate(names) if train[place] + test[place] < FEW
        ],
        "WARNING: classes without a picture to test with": [name for place, name in enumerate(names) if not test[place]],
        "links that were not followed (--follow-links follows them)": contents.links,
        "pictures of kinds that are not read; save them as PNG or JPEG": contents.not_read,
        "no pictures, passed over": contents.others,
        "classes without a picture, left out": contents.empty,
    }
    return [*lines, *_duplicate_lines(data), *(f"{text}: {in_words(paths)}" for text, paths in groups.items() if paths)]


def _duplicate_lines(data: Folder) -> list[str]:
    texts = {"train": "the same picture twice to train on", "test": "the same picture twice to test with"}
    texts["across"] = "WARNING: the same picture to train on and to test with, which makes accuracies too high"
    return [f"{texts[where]}: {len(groups)}, among them {' = '.join(groups[0])}" for where, groups in data.duplicates.items()]


def _privacy_lines(name: str, train: int, imagenet: str | None) -> list[str]:
    """Say where copies of the pictures lie, what the weights may have seen, and how δ was chosen."""
    lines = [
        f"All pictures are copied: packed into {plan.DATA}/raw/{name}, and by the run as arrays into {plan.DATA}/prepared and",
        f"{plan.DATA}/features. Nobody but you may read these. To list and delete them: python -m dpvision try --remove {name}",
    ]
    if imagenet is None:
        lines += [
            "WARNING: MobileNetV2 has seen ImageNet. No ε here holds for a picture that is in ImageNet, so none may be among",
            "these. You know it: give the command --imagenet no, or --imagenet yes, which refuses.",
        ]
    return [*lines, f"δ = {delta_for(train):g}: a power of ten, at most 1e-5 and at most 1/(100 N), N = {train:,}"]


def _cost_lines(name: str, root: Path) -> list[str]:
    """Say what the paper would take on this machine, as the plan counts it; a job begins with importing PyTorch."""
    planned = plan.load(own.settings_for([name]), root)
    estimator, cores = Estimator(planned, root), os.cpu_count() or 1
    jobs = {key: job for key in planned.kept() if (job := estimator.job(key)).seconds}
    jobs = {key: replace(job, seconds=job.seconds + BEGINS, longest=job.longest + BEGINS) for key, job in jobs.items()}
    counts = f"{len(planned.of('search'))} searches and {len(planned.runs)} trainings"
    if not jobs:
        return [f"Its {counts} are done."]
    by = "from what other work took here" if estimator.errors() else "guessed, as nothing was measured here yet"
    took = duration(wall_seconds(planned, jobs, cores))
    return [f"It takes {counts}: {took} on {counted('core', 'cores', cores)}, {by}."]


def duration(seconds: float) -> str:
    """Return a time in the unit that people would say it in."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}s"
    return "about a minute" if seconds >= 60 else "less than a minute"
