"""What the ε of an artifact leaves out: notes of tables and figures, by the records of the trainings that they show."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpvision.files import read_json
from dpvision.plan import specs
from dpvision.plan.specs import Spec
from dpvision.privacy.exclusions import list_exclusions, read_searched_data, trains_on_searched

NOT_PRIVATE = "As a whole it has no ε: {count} of its {total} trainings {are} not private."
SEARCHED = (
    "As a whole it has no ε: none holds for examples that searches held out and trainings use, and it shows such trainings."
)
TOGETHER = "Each ε is of one training. All {total} trainings together spend more."


class Training(NamedTuple):
    """A training that an artifact shows."""

    spec: Spec
    searched_data: list[Spec | None]
    """The data of each search that chose for it, as `list_exclusions` takes them."""

    @property
    def is_private(self) -> bool:
        return self.spec["budget"] is not None and specs.simulated(self.spec) == 1


def read_trainings(cells: Sequence[Spec], inputs: dict[str, list[str]]) -> list[Training]:
    """Read the specs of the trainings of cells, which lie beside the files of them that are inputs."""
    names = {name for cell in cells for name in cell["work"].get("train", {}).values()}
    folders = sorted({Path(file).parent for files in inputs.values() for file in files if Path(file).parent.name in names})
    found = []
    for folder in folders:
        if (folder / "spec.json").exists():
            spec = read_json(folder / "spec.json")
            found.append(Training(spec, read_searched_data(spec, folder)))
    return found


def exclusion_notes(trainings: Sequence[Training]) -> list[str]:
    """Say of trainings that are shown together what their ε leaves out, and whether there is one of all of them."""
    each = [list_exclusions(*training) for training in trainings if training.is_private]
    together = [TOGETHER.format(total=len(each))] if len(each) > 1 else []
    return [*count_exclusions(each), *(whole_notes(trainings) or together)]


def count_exclusions(exclusions: Sequence[Sequence[str]]) -> list[str]:
    """Say from the ε of how many trainings what is left out; `exclusions`: the sentences of each training."""
    counts = Counter(sentence for of_training in exclusions for sentence in of_training)
    return [
        f"{count} of {len(exclusions)} trainings with an ε: {sentence[0].lower()}{sentence[1:]}"
        for sentence, count in counts.items()
    ]


def whole_notes(trainings: Sequence[Training]) -> list[str]:
    """Say why all trainings together have no ε, where some of them have one."""
    private = [training for training in trainings if training.is_private]
    count = len(trainings) - len(private)
    if private and count:
        return [NOT_PRIVATE.format(count=count, total=len(trainings), are="is" if count == 1 else "are")]
    return [SEARCHED] if any(trains_on_searched(*training) for training in private) else []
