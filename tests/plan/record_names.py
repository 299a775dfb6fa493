"""Record the names that are planned for a paper today, for test_names.py: python tests/plan/record_names.py PAPER

Adds those that are not recorded yet, at each scale that the paper has, and changes no line that is there.
"""

import json
import sys
from pathlib import Path

from dpvision import plan

NAMES = Path(__file__).with_name("names")
STAGES = {"data": "data", "studies": "search", "runs": "train", "hessians": "hessian", "activations": "activations"}
STAGES |= {"attacks": "attack"}


def record(paper: str) -> None:
    overlays = list((plan.ROOT / "config/papers" / paper).glob("*.yaml"))
    for scale in sorted(file.stem for file in overlays if (plan.ROOT / "config/scales" / file.name).exists()):
        work = plan.load({"papers": [paper], "scale": scale}).work
        file = NAMES / paper / f"{scale}.jsonl"
        file.parent.mkdir(exist_ok=True)
        there = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        known = {json.loads(line)["name"] for line in there}
        lines = [
            json.dumps({"kind": kind, "name": name}, separators=(",", ":"))
            for kind, stage in STAGES.items()
            for name in sorted(name for of, name in work if of == stage and name not in known)
        ]
        file.write_text("".join(f"{line}\n" for line in [*there, *lines]), encoding="utf-8")
        print(f"{file.relative_to(plan.ROOT)}: {len(lines)} new names, {len(there)} were there")


if __name__ == "__main__":
    record(sys.argv[1])
