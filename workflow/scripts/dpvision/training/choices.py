"""How gradients are clipped, decided by the first run of a kind for all that come after it.

Which way is quickest is a matter of timing, and the last bits of the sums depend on the way. What one run decided lies
in a small file that names the kind of run: as long as it is there, the same run on the same kind of machine gives the
same bits. Copied to another folder of results it pins them there.
"""

from pathlib import Path

import torch

from dpvision.files import digest, read_json, write_json
from dpvision.plan.specs import Spec
from dpvision.privacy.fast import Choices
from dpvision.provenance import processor


class Decided:
    """The file of a kind of run: network, shape of the data, views, precision, processor and cores."""

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

    def read(self) -> Choices | None:
        return read_json(self.file)["choices"] if self.file.exists() else None

    def write(self, choices: Choices) -> None:
        """Unless another run was first."""
        if choices and not self.file.exists():
            write_json(self.file, {"choices": choices, "kind": self.kind})
