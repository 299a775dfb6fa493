"""An artifact beside the same one made again, somewhere else: equal to the last digit, or how far off in each cell."""

import csv
from pathlib import Path

from dpvision.errors import UserError
from dpvision.verify.artifacts import cells
from dpvision.verify.place import opened


def comparison(folder: Path, artifact: str) -> str:
    """Compare an artifact with itself made again; `folder` is an unpacked archive's, in whose source that was made."""
    with opened(folder) as place:
        if artifact not in place.plan.artifacts:
            raise UserError(f"the archive has no {artifact}; it has: {', '.join(place.plan.artifacts)}")
        archived = Path(place.plan.targets(artifact)[0])
        if str(archived) in place.left_out:
            raise UserError(f"{artifact} was left out of the archive on purpose: it shows what must not leave")
        again = folder / "source" / place.name(archived)
        if not again.exists():
            raise UserError(
                f"{again}: there is no such file; give the folder of an unpacked archive, and make {artifact} in it first"
            )
        texts = [path.read_text(encoding="utf-8") for path in (archived, again)]
        secret = len(place.plan.unrepeatable(place.plan.below(artifact)))
    count = sum(map(len, csv.reader(texts[0].splitlines()[1:])))
    if not (differences := cells(*texts)):
        return f"{artifact}: made again, all {count} cells are equal to the last digit"
    noise = (
        f"  {secret} of the trainings and searches behind it have secret noise: nobody can repeat them, their numbers differ"
    )
    lines = [f"  {where}: archived {one}, again {other}{_distance(one, other)}" for where, one, other in differences]
    return "\n".join([f"{artifact}: made again, {len(differences)} of {count} cells differ", *[noise] * bool(secret), *lines])


def _distance(one: str, other: str) -> str:
    try:
        return f", differs by {float(other) - float(one):+.6g}"
    except ValueError:
        return ""
