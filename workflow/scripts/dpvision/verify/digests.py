"""Files are what they were when they were packed; data sets and source are what they say they are."""

from collections.abc import Iterator
from pathlib import Path

from dpvision import files
from dpvision.archive.contents import MANIFEST
from dpvision.errors import UserError
from dpvision.plan import specs
from dpvision.plan.stages import Key
from dpvision.source import NOTE
from dpvision.verify.finding import ABSENT, Finding, equal
from dpvision.verify.place import Place
from dpvision.verify.unpack import is_inside


def manifest(place: Place) -> Iterator[Finding]:
    path = place.root / MANIFEST
    if not path.exists():
        yield Finding(MANIFEST, "file missing", "the SHA-256 of every file", ABSENT)
        return
    lines = [line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    expected = {name: sha for sha, name in lines}
    there = {place.name(file): file for file in place.root.rglob("*") if file.is_file()} if place.archive else {}
    for name in sorted({*expected, *there} - {MANIFEST}):
        if name not in there:
            yield Finding(name, "file missing", f"SHA-256 {expected[name]}", ABSENT)
        elif name not in expected:
            yield Finding(name, "file that the manifest does not name", ABSENT, "a file")
        else:
            yield from equal(name, "SHA-256", expected[name], files.file_digest(there[name]))


def source(place: Place) -> Iterator[Finding]:
    """Check the source by source.json: an archive whose manifest was made to fit an edited file is found here."""
    said = files.read_json(place.root / "source" / NOTE)
    for name, sha in said["files"].items():
        if not is_inside(name):
            raise UserError(f"source/{NOTE} names {name!r:.200}, which may lie outside of the archive")
        file = place.root / "source" / name
        yield from equal(f"source/{name}", "SHA-256 by source.json", sha, files.file_digest(file) if file.is_file() else ABSENT)
    assert place.about
    for key in ("commit", "date", "changed"):
        yield from equal("archive.json", f"{key} by source/{NOTE}", said[key], place.about[key])


def data_set(place: Place, key: Key) -> Iterator[Finding]:
    """Check that a data set's description proves itself, is of its spec, and of the raw files that were fetched."""
    yield from features(place, key)
    raw = Path(place.plan.shared) / "raw" / key[1].rsplit("-", 1)[0] / "files.json"
    if place.archive and Path(place.plan.product(key)).exists():
        spec = place.plan.work[key]
        found = {key: value["md5"] for key, value in files.read_json(raw)["files"].items()} if raw.exists() else ABSENT
        yield from equal(f"data/raw/{spec['name']}/files.json", "MD5s of the raw files", spec["files"], found)


def features(place: Place, key: Key) -> Iterator[Finding]:
    """Check that the description of a data set, or of features, proves itself and is of its spec."""
    name = key[1]
    file = Path(place.plan.product(key))
    where = f"data/{file.parent.parent.name}/{name}/dataset.json"
    if not file.exists():
        yield Finding(where, "file missing", "the digests of the data", ABSENT)
        return
    said = files.read_json(file)
    described = {key: value for key, value in said.items() if key != "digest"}
    yield from equal(where, "digest of what it says", files.digest(described), said["digest"])
    yield from equal(where, "digest of its spec, by the folder's name", name.rsplit("-", 1)[1], said["spec"])
    if place.archive:
        spec = place.plan.work[key]
        yield from equal("plan.json", f"digest of the spec of {name}", files.digest(spec), said["spec"])
        if "weights" in said:  # features that were computed before it was kept do not say it
            made_by = specs.weights_key(spec["weights"])
            there = weights_left(place, made_by, spec["weights"].get("take"))
            yield from equal(where, f"SHA-256 of the weights, by {made_by[1]}", there or said["weights"], said["weights"])


def weights_left(place: Place, key: Key, take: str | None) -> str | None:
    """Return the SHA-256 of the weights that a piece of work left, by the small file that proves them, if that is there."""
    proof = Path(place.plan.proof(key))
    of_a_run = "averaged_sha256" if take == "averaged" else "weights_sha256"
    return files.read_json(proof)[of_a_run if key[0] == "train" else "safetensors_sha256"] if proof.exists() else None


def weights(place: Place, key: Key) -> Iterator[Finding]:
    """Check that weights are those that their spec names by SHA-256."""
    file = Path(place.plan.product(key))
    where = f"data/weights/{key[1]}/weights.json"
    if not file.exists():
        yield Finding(where, "file missing", "the digest of the weights", ABSENT)
        return
    said = files.read_json(file)
    yield from equal(where, "digest of its spec, by the folder's name", key[1].rsplit("-", 1)[1], said["spec"])
    if place.archive:
        yield from equal(where, "SHA-256 by the spec", place.plan.work[key]["sha256"], said["sha256"])
