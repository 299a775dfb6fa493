"""python -m dpvision: look at the plan, the results and the models; nothing is trained."""

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpvision import plan
from dpvision.disk import full_disk_message, is_full_disk
from dpvision.errors import UserError
from dpvision.files import write_json, write_text
from dpvision.plan import own
from dpvision.plan.reading import read_yaml

Option = tuple[tuple[str, ...], dict[str, Any]]
COMMANDS: dict[str, tuple[Callable[..., None], str, tuple[Option, ...]]] = {}
"""What each command runs, what its help says, and what may follow it; in the order of the help."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dpvision", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, (function, text, options) in COMMANDS.items():
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(function=function)
        for names, settings in options:
            made.add_argument(*names, **settings)

    arguments = vars(parser.parse_args())
    try:
        arguments.pop("function")(**arguments)
        sys.stdout.flush()
    except UserError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if not is_full_disk(error):
            raise
        sys.exit(full_disk_message(_here()))


def _command(text: str, *options: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function, `_plan`, a command, `plan`: its help, and the options that it takes by name."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        COMMANDS[function.__name__.removeprefix("_")] = (function, text, options)
        return function

    return add


def _option(*names: str, **settings: Any) -> Option:
    return names, settings


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text}")
        return int(text)

    return number


def _hours(text: str) -> float:
    """Return a time such as 48h, 90m or 2d in seconds."""
    unit = {"m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    if not unit or not text[:-1].replace(".", "", 1).isdecimal() or not float(text[:-1]):
        raise argparse.ArgumentTypeError(f"must be a time like 48h, 90m or 2d, not {text}")
    return float(text[:-1]) * unit


@functools.cache
def _here() -> Path:
    """Return the folder where Snakemake reads the configuration and puts results: this one, or else the project's."""
    if Path("config/config.yaml").exists():
        return Path.cwd()
    print(f"in {plan.ROOT}:", file=sys.stderr)
    return plan.ROOT


def _load(scale: str | None, targets: Sequence[str] = ()) -> plan.Plan:
    """Return the plan of a scale; without one of the scale in config.yaml, or of own papers if the targets name such."""
    root = _here()
    document = read_yaml(root, "config/config.yaml")
    if isinstance(document.content, dict):
        document.content.update({"scale": scale} if scale else own.settings_for(own.own_papers_in(targets, root)))
    return plan.load(document.content, root)


def _tell_of_own_papers(planned: plan.Plan) -> None:
    """Print which own papers there are that a command did not look at."""
    others = [name for name in own.own_papers(_here()) if name not in planned.own]
    if others:
        print(f"\nin {own.FOLDER}/: {', '.join(others)}; see python -m dpvision plan {others[0]}")


def _load_whole(scale: str | None) -> plan.Plan:
    """Return the plan of a machine that has all data and weights: kept results are the same, whoever looks at them."""
    root = _here()
    document = read_yaml(root, "config/config.yaml")
    entries = [entry for name in ("datasets", "weights") for entry in read_yaml(root, f"config/{name}.yaml").content.items()]
    brought = {"folders": {name: "." for name, about in entries if not about.get("sources")}}
    return plan.load(document.content | brought | ({"scale": scale} if scale else {}), root)


def _find(part: str, scale: str | None) -> Any:
    from dpvision.looking.runs import find

    return find(_here(), part, functools.cache(_load), scale)


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2)


SCALE = _option("--scale", help="instead of the one in config/config.yaml")
JSON = _option("--json", action="store_true", help="for programs")
OF_SCALE = _option("--scale", help="look among the runs of this scale alone")
TARGETS = _option("targets", nargs="*", default=["all"], help="all, a paper, or artifacts (default: all)")
ARTIFACT = _option("artifact", help="a table or figure: table1")
PART = "a part of its folder's name"


@_command(
    "list what a target needs, and how much of it is done",
    SCALE,
    TARGETS,
    _option("--cost", action="store_true", help="device-hours, wall time, memory and disk of what is left"),
    _option("--budget", type=_hours, metavar="TIME", help="choose what completes most in this time: 48h, 90m, 2d"),
    _option("--devices", type=_at_least(1), default=1, help="number of devices that work at once (default: 1)"),
    _option("--device", metavar="NAME", help="one with records, or in config/devices.yaml (default: as last)"),
    JSON,
)
def _plan(
    scale: str | None, targets: list[str], cost: bool, budget: float | None, devices: int, device: str | None, json: bool
) -> None:
    from dpvision.looking import budget as budgets
    from dpvision.looking import estimate
    from dpvision.looking.overview import overview
    from dpvision.looking.target import artifacts_of

    loaded = _load(scale, targets)
    if not (cost or budget or json):
        print(overview(loaded, targets, _here()))
        _tell_of_own_papers(loaded)
        return
    chosen, estimator = artifacts_of(loaded, targets, _here()), estimate.Estimator(loaded, _here(), device)
    found: dict[str, Any] = {}
    text = []
    if cost or not budget:
        found = estimate.table(loaded, estimator, chosen, devices)
        text.append(estimate.as_text(loaded, found))
    if budget:
        picked = budgets.within(loaded, estimator, chosen, budget, devices)
        found["budget"] = picked | {"command": budgets.command(loaded, picked)}
        text.append(budgets.as_text(loaded, picked))
    text += loaded.left_out_for_data() if "all" in targets else []
    print(_as_json(found) if json else "\n\n".join(text))


@_command(
    "list what is done, running, failed or missing and why, and what was made by other code than this", SCALE, TARGETS, JSON
)
def _status(scale: str | None, targets: list[str], json: bool) -> None:
    from dpvision.looking.status import Status, as_json, as_text

    status = Status(_load(scale, targets), _here(), targets)
    print(_as_json(as_json(status)) if json else as_text(status))
    if not json:
        _tell_of_own_papers(status.plan)


@_command(
    "print a run's card: its settings, results, what it spent and its curve",
    _option("part", metavar="RUN", help=PART),
    OF_SCALE,
    JSON,
)
def _show(part: str, scale: str | None, json: bool) -> None:
    from dpvision.looking.show import as_json, as_text

    run = _find(part, scale)
    print(_as_json(as_json(run)) if json else as_text(run))


@_command(
    "print what differs between two runs, in settings and in results",
    _option("part", metavar="RUN", nargs=2, help=PART),
    OF_SCALE,
    JSON,
)
def _compare(part: list[str], scale: str | None, json: bool) -> None:
    from dpvision.looking.compare import as_text, compared

    found = compared(*(_find(one, scale) for one in part))
    print(_as_json(found) if json else as_text(found))


@_command(
    "attack the engine, or the step of a run, and print what it proves; minutes",
    _option("part", metavar="RUN", nargs="?", help="a part of a run's name: by its q, σ, steps and network"),
    _option("--all", action="store_true", dest="every", help="replay every network of the catalogue"),
    SCALE,
)
def _audit(part: str | None, every: bool, scale: str | None) -> None:
    import logging

    from dpvision.audit.job import audit, listing
    from dpvision.plan import audits

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr, force=True)
    planned = _load(scale)
    if part and every:
        raise UserError(f"--all belongs to the engine's audit, but {part} names a run: leave one of them out")
    if part:
        run = _find(part, scale)
        spec = audits.run_audit(run.spec, (run.provenance or {}).get("clipping"))
    else:
        spec = audits.engine_audit(planned.runs.values(), every)
    folder = _here() / planned.results / "audits" / audits.audit_name(spec)
    about = audit(spec, folder, min(2, os.cpu_count() or 1))
    print(listing(about, folder.relative_to(_here())))
    if about["verdict"] == "refuted":
        sys.exit(1)


@_command("write the page of claims from the records that there are now, and run nothing", SCALE)
def _claims(scale: str | None) -> None:
    from dpvision.reporting.so_far import listing, write_so_far

    planned = _load(scale)
    if not (pages := planned.of_kind("")):
        raise UserError(f"there are no claims: no artifact of {' or '.join(planned.papers)} is of the kind claims")
    for name in pages:
        print("\n".join([*listing(write_so_far(planned, name, _here())), "", *planned.targets(name)]))


@_command(
    "make a table or figure of the records that there are now, and run nothing",
    ARTIFACT,
    SCALE,
)
def _draw(artifact: str, scale: str | None) -> None:
    from dpvision.looking.target import artifacts_of
    from dpvision.reporting.so_far import draw_so_far

    planned = _load(scale, [artifact])
    for name in artifacts_of(planned, [artifact], _here()):
        print("\n".join([f"{name}: {draw_so_far(planned, name, _here())}", *planned.targets(name)]))


@_command(
    "copy the small files of results to a folder to commit, with tables, figures, a page",
    _option("folder", type=Path, help="folder to write; results that lie there already stay and are shown too"),
    SCALE,
)
def _keep(folder: Path, scale: str | None) -> None:
    from dpvision.reporting.keep import keep

    made = keep(_load_whole(scale), _here(), folder)
    print(f"{folder / 'README.md'} shows {', '.join(made)}")


@_command(
    "write the page of all kept results, an entry for a leaderboard, an artifact appendix, a checklist",
    _option("folder", type=Path, nargs="?", default=Path("docs/results"), help="default: docs/results"),
)
def _evidence(folder: Path) -> None:
    from dpvision.evidence.write import write_evidence

    print("\n".join(map(str, write_evidence(folder, _load_whole))))


@_command(
    "list every model with its parameters and multiply-adds",
    _option("--classes", type=_at_least(1), default=10, help="default: 10"),
    _option("--size", type=_at_least(8), default=32, help="height and width of the images (default: 32)"),
    _option("--channels", type=_at_least(1), default=3, help="default: 3"),
    JSON,
    _option("--count", action="store_true", help="write counts.json of families without `layers`, for every paper"),
)
def _models(classes: int, size: int, channels: int, json: bool, count: bool) -> None:
    from dpvision.models.catalogue import catalogue, listing
    from dpvision.models.count import write_counts

    if count:
        files = sorted((plan.ROOT / "config/papers").glob("*/*.yaml"))
        scales = [file for file in files if (plan.ROOT / "config/scales" / file.name).exists()]  # paper.yaml is one of them
        plans = (plan.load({"papers": [file.parent.name], "scale": file.stem}) for file in scales)
        print("\n".join(map(str, write_counts(plans))) or "every family counts its own layers: there is nothing to write")
        return
    rows = catalogue(classes, [channels, size, size])
    print(_as_json(rows) if json else listing(rows, classes, [channels, size, size]))


@_command(
    "check whether the results of an archive or a folder follow from their records",
    _option("path", type=Path, help="an archive (.zip), its folder, or a folder of results (results/demo)"),
    JSON,
)
def _verify(path: Path, json: bool) -> None:
    from dpvision.verify.verdict import verify

    verdict = verify(path)
    print(_as_json(verdict.as_json()) if json else verdict)
    if not verdict.holds:
        sys.exit(1)


@_command(
    "compare an artifact of an archive with the same one made again",
    _option("archive", type=Path, help="the folder of an unpacked archive, in whose source/ it was made again"),
    ARTIFACT,
)
def _again(archive: Path, artifact: str) -> None:
    from dpvision.verify.again import comparison

    print(comparison(archive, artifact))


@_command(
    "write a small paper for a folder of pictures: a private head on public weights",
    _option("folder", type=Path, nargs="?", help="pictures in a folder for each class, or in such below train/ and test/"),
    _option("--name", help="of the paper, in own/ (default: made of the folder's)"),
    _option("--from-scratch", action="store_true", help="and a network from scratch, which takes far longer"),
    _option("--imagenet", choices=["no", "yes"], help="whether pictures of ImageNet are among them, which the weights saw"),
    _option("--follow-links", action="store_true", help="links that lead out of the folder, and links to folders"),
    _option("--remove", metavar="NAME", help="list and delete a paper in own/, and all copies and results of its pictures"),
)
def _try(
    folder: Path | None, name: str | None, from_scratch: bool, imagenet: str | None, follow_links: bool, remove: str | None
) -> None:
    if remove and folder:
        raise UserError("--remove NAME takes no folder: your pictures stay as they are")
    if remove:
        _remove(remove)
        return
    if folder is None:
        raise UserError("name a folder of pictures, or what to delete: --remove NAME")
    from dpvision.own_pictures.try_folder import try_folder

    options = {"from_scratch": from_scratch, "follow_links": follow_links}
    print("\n".join(try_folder(folder, _here(), name, imagenet=imagenet, **options)))


def _remove(name: str) -> None:
    """List what there is of an own paper, ask if somebody is there to answer, and delete it."""
    from dpvision.own_pictures.remove import copies_of, listing, remove

    copies = copies_of(name, _here())
    print("\n".join(listing(copies, _here())), flush=True)
    if sys.stdin.isatty() and input("Delete all of it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError("nothing was deleted")
    print("\n".join(remove(copies, _here())))


@_command("write the JSON schemas of the configuration to config/schema, and config/README.md")
def _schema() -> None:
    from dpvision.plan.reference import reference
    from dpvision.plan.schema import schemas

    made = schemas()
    for name, schema in made.items():
        write_json(plan.ROOT / "config/schema" / name, schema)
        print(f"config/schema/{name}")
    write_text(plan.ROOT / "config/README.md", reference(made))
    print("config/README.md")


if __name__ == "__main__":
    main()
