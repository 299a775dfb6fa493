"""python -m dpvision: look at the plan, the results and the models without running anything."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from dpvision import plan
from dpvision.errors import UserError
from dpvision.files import write_json
from dpvision.plan.reading import read_yaml


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m dpvision", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.set_defaults(function=function)
        return made

    for name, function, text in (
        ("plan", _plan, "what a target would take, and what of it is there already"),
        ("status", _status, "results made by other code than this, and runs that are unfinished"),
    ):
        made = command(name, function, text)
        made.add_argument("--scale", help="instead of the one in config/config.yaml")
        if name == "plan":
            made.add_argument("targets", nargs="*", default=["all"], help="all, a paper, or artifacts (default: all)")
    models = command("models", _models, "every model with its parameters and multiply-adds")
    models.add_argument("--classes", type=_at_least(1), default=10, help="default: 10")
    models.add_argument("--size", type=_at_least(8), default=32, help="height and width of the images (default: 32)")
    models.add_argument("--channels", type=_at_least(1), default=3, help="default: 3")
    models.add_argument("--json", action="store_true", help="for programs")
    verifying = command("verify", _verify, "whether an archive's or a folder's results follow from their records")
    verifying.add_argument("path", type=Path, help="an archive (.zip), its folder, or a folder of results (results/demo)")
    verifying.add_argument("--json", action="store_true", help="for programs")
    compared = command("again", _again, "an artifact of an archive beside the same one made again")
    compared.add_argument("archive", type=Path, help="the folder of an unpacked archive, in whose source/ it was made again")
    compared.add_argument("artifact", help="a table or figure: table1")
    command("schema", _schema, "write the JSON schemas of the configuration to config/schema")

    arguments = vars(parser.parse_args())
    try:
        arguments.pop("function")(**arguments)
        sys.stdout.flush()
    except UserError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text}")
        return int(text)

    return number


def _here() -> Path:
    """Where Snakemake would look for the configuration and put results: this folder, or else the project's."""
    return Path.cwd() if Path("config/config.yaml").exists() else plan.ROOT


def _load(scale: str | None) -> plan.Plan:
    if _here() != Path.cwd():
        print(f"in {_here()}:")
    document = read_yaml(_here(), "config/config.yaml")
    if scale and isinstance(document.content, dict):
        document.content["scale"] = scale
    return plan.load(document.content)


def _plan(scale: str | None, targets: list[str]) -> None:
    from dpvision.plan.overview import overview

    print(overview(_load(scale), targets, _here()))


def _status(scale: str | None) -> None:
    from dpvision.plan.status import status

    print(status(_load(scale), _here()))


def _models(classes: int, size: int, channels: int, json: bool) -> None:
    from dpvision.models.catalogue import catalogue, listing

    rows = catalogue(classes, [channels, size, size])
    print(_as_json(rows) if json else listing(rows, classes, [channels, size, size]))


def _verify(path: Path, json: bool) -> None:
    from dpvision.verify.verdict import verify

    verdict = verify(path)
    print(_as_json(verdict.as_json()) if json else verdict)
    if not verdict.holds:
        sys.exit(1)


def _again(archive: Path, artifact: str) -> None:
    from dpvision.verify.again import comparison

    print(comparison(archive, artifact))


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2)


def _schema() -> None:
    from dpvision.plan.schema import schemas

    for name, schema in schemas().items():
        write_json(plan.ROOT / "config/schema" / name, schema)
        print(f"config/schema/{name}")


if __name__ == "__main__":
    main()
