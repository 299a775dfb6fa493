"""Tell which data sets have pictures in common: private training on one cannot begin with weights that saw the other."""

from dpvision.config.datasets import Dataset

FOLDER = "folder"  # the one reader that says how pictures lie, and not which they are


def share_pictures(one: str, other: str, datasets: dict[str, Dataset]) -> bool:
    """Tell whether two data sets have pictures in common, by what their entries say, or may have them by their files."""
    ours, theirs = named_by(one, datasets), named_by(other, datasets)
    return bool(ours & theirs) or any(_may_share(datasets[a], datasets[b]) for a in ours for b in theirs)


def named_by(name: str, datasets: dict[str, Dataset]) -> set[str]:
    """Return a data set, those whose pictures it has, and those whose pictures these have."""
    found, left = set[str](), [name]
    while left:
        name = left.pop()
        if name in datasets and name not in found:
            found.add(name)
            left += _said(datasets[name])
    return found


def _said(dataset: Dataset) -> list[str]:
    """Return the data sets that an entry names; one that names none has the pictures of whose reader it takes."""
    if dataset.pictures is not None:
        return dataset.pictures
    return [dataset.reader] if dataset.reader and dataset.reader != FOLDER else []


def _may_share(one: Dataset, other: Dataset) -> bool:
    """Tell whether two data sets are of the same file, and not both say which pictures of it they have."""
    unsaid = one.pictures is None or other.pictures is None
    return unsaid and bool({*one.files.values()} & {*other.files.values()})
