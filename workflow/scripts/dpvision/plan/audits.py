"""Specs of audits: one of the engine, once a scale; one of a run, by its q, σ, steps and network."""

from collections.abc import Iterable
from typing import Any

from dpvision.errors import UserError
from dpvision.files import digest
from dpvision.models.found import FAMILIES
from dpvision.models.options import Network, counts_of_layers
from dpvision.plan import specs
from dpvision.plan.specs import Spec

CONFIDENCE = 0.999  # De et al.'s
RUNS = 256  # runs of canaries: some 100,000 observations in each world
LEVELS = [1.0, 2.0, 4.0, 8.0]  # levels of ε at q = 0.64, 50 steps and δ = 0.01: De et al., table 9, 100 examples
SHAPE, CLASSES = [3, 32, 32], 10
LARGEST = 50_000_000  # parameters: what is larger takes more than 10 GB to replay, and has the layers of a smaller one


def engine_audit(runs: Iterable[Spec], every_network: bool = False) -> Spec:
    """Return the audit of the engine: with the recipe of the first private run whose values are all known."""
    networks = [{"name": name, "model": _as_spec(network)} for name, network in _chosen(every_network)]
    of_images = (run for run in runs if run["budget"] and specs.data_key(run)[0] == "data")
    known = (run for run in of_images if not any(key.startswith("recipe.") for key in specs.searched_keys(run)))
    recipe = next(({**specs.on_one_device(run), "model": networks[0]["model"]} for run in known), None)
    return _spec(recipe, networks, LEVELS)


def run_audit(run: Spec, clipping: dict[str, Any] | None = None) -> Spec:
    """Return the audit of one run: nothing but its own. `clipping`: the choices that its training was made with, if it is."""
    if found := specs.searched_keys(run):
        raise UserError(
            f"{specs.run_name(run)}: {', '.join(found)} is left to a search that has not found it yet; "
            "train the run first, or name one whose values are all known"
        )
    return _spec(run, [], []) | ({"clipping": clipping} if clipping else {})


def audit_name(spec: Spec) -> str:
    """Return the audit's name: the engine's or the run's, with the digest."""
    return f"{'engine' if spec['networks'] else specs.run_name(specs.as_planned(spec['run']))}-{digest(spec)}"


def _spec(run: Spec | None, networks: list[Spec], levels: list[float]) -> Spec:
    said = {"kind": "audit", "confidence": CONFIDENCE, "runs": RUNS, "levels": levels, "networks": networks}
    return specs.canonical({**said, "run": run})


def _chosen(every: bool) -> list[tuple[str, Network]]:
    """Return the networks of the catalogue by name, the smallest first; of each family the smallest, or all up to LARGEST."""
    found: list[tuple[str, Network]] = []
    for family in FAMILIES.values():
        of_family = sorted(getattr(family, "CATALOGUE", {}).items(), key=lambda item: _weights(item[1]))
        found += [one for one in of_family if _weights(one[1]) <= LARGEST] if every else of_family[:1]
    return sorted(found, key=lambda item: _weights(item[1]))


def _weights(network: Network) -> int:
    layers = getattr(FAMILIES[network.family], "layers", None)
    return counts_of_layers(layers(network.model_dump(), SHAPE, CLASSES)).parameters if layers else 0


def _as_spec(network: Network) -> Spec:
    return {**network.as_spec({"label"}), "slug": network.slug()}
