"""What is there and how it came about: results of other code, unfinished runs."""

from collections.abc import Iterator
from pathlib import Path

from dpvision.code import code_digest
from dpvision.files import read_json
from dpvision.plan.build import DATA, Plan


def status(plan: Plan, root: Path) -> str:
    others = [f"  {folder}  ({reason})" for folder, reason in _made_by_other_code(plan, root)]
    unfinished = sorted((root / plan.results / "checkpoints").glob("*/state.pt"))
    missing = [run for run in plan.runs if not all((root / file).exists() for file in plan.record(run))]
    lines = [f"scale {plan.scale}: {len(plan.runs) - len(missing)} of {len(plan.runs)} trainings are there"]
    if unfinished:
        lines += ["", "unfinished, with a checkpoint; the same command goes on from there:"]
        lines += [f"  {file.parent.relative_to(root)}" for file in unfinished]
    if others:
        lines += [
            "",
            "made by other code than what is here now (nothing runs again by itself; delete a folder, and "
            "`snakemake all` makes it anew):",
        ]
        lines += others
    else:
        lines += ["", "all results were made by the code that is here"]
    return "\n".join(lines)


def _made_by_other_code(plan: Plan, root: Path) -> Iterator[tuple[str, str]]:
    folders = {
        f"{plan.results}/runs": plan.runs,
        f"{plan.results}/studies": plan.studies,
        f"{plan.results}/hessians": plan.hessians,
        f"{plan.results}/activations": plan.activations,
        f"{DATA}/prepared": plan.data,
    }
    now: dict[str, str] = {}
    for folder, names in folders.items():
        for name in names:
            file = root / folder / name / "provenance.json"
            if not file.exists():
                continue
            made = read_json(file)
            stage = made["stage"]
            now.setdefault(stage, code_digest(*stage.split()))
            codes = {made["code"], *(session["code"] for session in made.get("sessions", []))}
            if codes != {now[stage]}:
                yield f"{folder}/{name}", f"code {' and '.join(sorted(codes))}, now {now[stage]}"
