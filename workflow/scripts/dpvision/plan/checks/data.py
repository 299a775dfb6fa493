"""Check data sets, and the weights and features beside them."""

from collections.abc import Iterator

from dpvision.config.datasets import Dataset
from dpvision.config.weights import Features, Weights
from dpvision.plan.reading import Documents, complaint, unknown


def of_folders(folders: dict[str, str], known: list[str], documents: Documents) -> Iterator[str]:
    for name, folder in folders.items():
        if name not in known:
            yield unknown(documents, ("folders", name), "data set", name, known, folder)


def of_weights(weights: dict[str, Weights], datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    for name, entry in weights.items():
        if name in datasets:
            yield complaint(
                documents, (name,), "this is the name of a data set; `folders` could mean either: rename the weights"
            )
        if len(entry.mean) != len(entry.std):
            yield complaint(documents, (name, "std"), f"must have {len(entry.mean)} values, as mean has", entry.std)
        yield from _of_others((name, "seen"), entry.seen, datasets, documents)


def of_features(
    features: dict[str, Features], datasets: dict[str, Dataset], weights: dict[str, Weights], documents: Documents
) -> Iterator[str]:
    for name, entry in features.items():
        if name in datasets:
            yield complaint(documents, (name,), "this is the name of a data set; give the features a name of their own")
        if entry.of not in datasets:
            yield unknown(documents, (name, "of"), "data set", entry.of, list(datasets), entry.of)
        if entry.weights is None:
            continue
        if entry.weights not in weights:
            yield unknown(documents, (name, "weights"), "file of weights", entry.weights, list(weights), entry.weights)
        elif entry.of in datasets:
            has, takes = datasets[entry.of].shape[0], len(weights[entry.weights].mean)
            if has not in (1, takes):
                yield complaint(documents, (name, "of"), f"its images have {has} channels, the network takes {takes}", entry.of)


def of_datasets(datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    for name, dataset in datasets.items():
        if dataset.validation >= dataset.train:
            left = f"must be below {dataset.train}, the training examples it is taken from"
            yield complaint(documents, (name, "validation"), left, dataset.validation)
        if not dataset.files and not (dataset.streamed and not dataset.sources):
            yield complaint(documents, (name, "files"), "must name the raw files, and the MD5 of each")
        if dataset.streamed and dataset.shape[1] != dataset.shape[2]:
            yield complaint(documents, (name, "shape"), "must be square: streamed pictures become squares", dataset.shape)
        for key, values in (("mean", dataset.mean), ("std", dataset.std)):
            if len(values) != dataset.shape[0]:
                yield complaint(documents, (name, key), f"must have {dataset.shape[0]} values, one a channel", values)
        yield from _of_others((name, "pictures"), dataset.pictures or [], datasets, documents)


def _of_others(where: tuple, names: list[str], datasets: dict[str, Dataset], documents: Documents) -> Iterator[str]:
    """Yield a line for each name of a list that is no data set's."""
    for i, name in enumerate(names):
        if name not in datasets:
            yield unknown(documents, (*where, i), "data set", name, list(datasets), name)
