"""The method of clipping gradients, decided by the first run of a kind for all that come after it.

Which way is quickest is a matter of timing, and the last bits of the sums depend on the way. What one run decided lies
in a small file that names the kind of run: as long as it is there, the same run on the same kind of machine gives the
same bits. Copied to another folder of results it pins them there.
"""

from pathlib import Path

import torch

from dpvision.files import digest, read_json, write_json
from dpvision.plan.specs import Spec
from dpvision.privacy.fast import Choices, Kinds
from dpvision.provenance import processor

MACHINE = ("views", "precision", "processor", "threads", "torch")


class Decided:
    """The file of decisions for a kind of run: network, shape of the data, views, precision, processor and cores."""

    def __init__(self, folder: Path, spec: Spec, device: torch.device) -> None:
        recipe, data = spec["recipe"], spec["data"]
        self.kind = {
            "model": spec["model"],
            "classes": data["classes"],
            "shape": data["shape"],
            "views": recipe["augmentation"]["views"] if recipe["augmentation"] else 1,
            "precision": recipe["precision"],
            "processor": torch.cuda.get_device_name(device) if device.type == "cuda" else processor(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
        self.file = folder / f"{spec['model']['slug']}-{digest(self.kind)}.json"

    def read(self, kinds: Kinds) -> Choices:
        """Return what the first run of this kind decided, or one whose layers are of the same kinds in another order."""
        if self.file.exists():
            choices: Choices = read_json(self.file)["choices"]
            return choices
        for file in sorted(self.file.parent.glob("*.json")):
            other = read_json(file)
            same = all(other["kind"][key] == self.kind[key] for key in MACHINE)
            if same and sorted(other.get("layers", {}).values()) == sorted(kinds.values()):
                ways = {other["layers"][layer]: way for layer, way in other["choices"]["layers"].items()}
                return other["choices"] | {"layers": {layer: ways[kind] for layer, kind in kinds.items()}}
        return {}

    def write(self, choices: Choices, kinds: Kinds) -> None:
        """Write down what was decided, unless another run was first."""
        if choices and not self.file.exists():
            write_json(self.file, {"choices": choices, "kind": self.kind, "layers": kinds})
