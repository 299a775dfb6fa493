"""A short audit by the library in a folder: probe.py LIBRARY RECORD; prints the verdict, and that of each design."""

import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from dpvision.audit.job import audit
from dpvision.audit.subject import engine_run
from dpvision.plan import audits

RUNS, LEVEL = 16, 8.0
HELD_OUT, BATCH, STEPS = 200, 128, 60  # a q that is no whole number of batches, and not that of all examples


def main() -> None:
    spec = audits.engine_audit([])
    model = spec["networks"][0]["model"]
    run = engine_run(model, batch=BATCH, steps=STEPS)
    run = {**run, "data": {**run["data"], "train": 1497, "validation": HELD_OUT}}
    found = audit({**spec, "run": run, "networks": spec["networks"][:1], "levels": [LEVEL], "runs": RUNS}, Path(sys.argv[2]))
    designs: dict[str, str] = {}
    for row in found["tests"]:
        known = designs.setdefault(row["design"], "consistent")
        worse = [verdict for verdict in ("refuted", "loose", "consistent") if verdict in (known, row["verdict"])]
        designs[row["design"]] = worse[0]
    print(json.dumps({"verdict": found["verdict"], "designs": designs}))


main()
