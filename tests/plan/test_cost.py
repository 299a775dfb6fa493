"""A job asks for what follows from its spec, and the plan's counts are those of the real networks."""

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dpvision.files import write_json
from dpvision.models import build
from dpvision.models.catalogue import MODELS
from dpvision.models.count import multiply_adds, parameter_count
from dpvision.models.found import FAMILIES
from dpvision.models.options import Counts
from dpvision.plan import cost, resources, stages

SHAPES = [([3, 32, 32], 10), ([1, 16, 16], 10), ([3, 64, 64], 200), ([3, 160, 160], 10), ([2, 33, 47], 7)]


def run_of(model: dict, shape: list[int] = SHAPES[0][0], classes: int = 10, **recipe: Any) -> dict:
    """Return a run with 50,000 examples, of which 45,000 train, and one epoch in batches of 1,000."""
    data = {"shape": shape, "classes": classes, "train": 50_000, "test": 10_000, "validation": 5_000}
    return {
        "data": data,
        "model": model,
        "recipe": {"batch": 1000, "epochs": 1, "augmentation": None, "simulate": None, **recipe},
    }


@pytest.mark.parametrize(("shape", "classes"), SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_the_counts_are_those_of_the_network(name, shape, classes):
    if name.startswith("wrn28") and shape[1] == 160:
        shape = [3, 96, 96]  # the same in less time
    if name == "densenet121, literal" and shape[1] == 16:
        shape = [1, 32, 32]  # it halves images five times
    model = MODELS[name].model_dump()
    with torch.device("meta"):
        network = build(model, classes, shape[0])
    counted = cost.counts_of(run_of(model, shape, classes))
    assert counted.multiply_adds == multiply_adds(network, shape)
    assert 0.95 * parameter_count(network) < counted.parameters <= parameter_count(network)  # norms and biases are left out


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_layers_or_a_table_of_counts(family):
    assert hasattr(FAMILIES[family], "layers") or cost.table_of(FAMILIES[family]).exists()


@pytest.fixture
def uncounted(monkeypatch):
    """Make runs of the family resnet9 where it has neither layers nor a table."""
    monkeypatch.delattr(FAMILIES["resnet9"], "layers")
    return lambda **recipe: run_of(MODELS["resnet9"].model_dump(exclude={"label"}) | {"slug": "resnet9"}, **recipe)


def test_a_job_of_a_network_that_nobody_counted_asks_for_the_scales_limits(uncounted, configuration):
    run, planned = uncounted(gpus=2, averaging=None, optimizer={"name": "sgd"}), configuration.plan()
    hessian, limits = {"examples": 8, "iterations": 10, "lanczos_steps": 9}, planned.resources["train"]
    data = 2 * 60_000 * 3 * 32 * 32 / 1e6 + 256 * 3 * 32 * 32 * 4 / 1e6  # examples, and a batch of them
    for job, devices in (
        (cost.training(run, 256), 2),
        (cost.search_worker({"run": run, "trials": 7}, 256, 2), 1),
        (cost.hessian(hessian, run, 256), 1),
        (cost.activations(hessian, run), 1),
    ):
        found = [asked(planned, "train", job, attempt) for attempt in (1, 2)]
        assert [one["runtime"] for one in found] == [limits.runtime] * 2
        assert 0 <= found[0]["mem_mb"] - limits.mem_mb * devices <= data + 1
        assert found[0]["gpu"] == devices
    assert cost.record_bytes(run) == cost.checkpoint_bytes(run) == 0


def test_a_table_counts_where_a_family_has_no_layers(uncounted, monkeypatch, tmp_path):
    counted, other = uncounted(), uncounted()
    other["model"] = other["model"] | {"width": 0.5}
    counts = Counts(284_895_232, 2_447_946, 5, 3)
    write_json(tmp_path / "counts.json", {cost.counts_key(counted): asdict(counts)})
    monkeypatch.setattr(cost, "table_of", lambda family: tmp_path / "counts.json")
    assert cost.counts_of(counted) == counts
    assert cost.counts_of(other) == cost.UNCOUNTED


def test_what_a_search_finds_does_not_change_the_entry_of_the_table(uncounted):
    run = uncounted()
    planned, trial = (run | {"model": run["model"] | {"groups": groups}} for groups in ({"study": "a-study"}, None))
    found = run | {"model": run["model"] | {"groups": 8}, "found_by": {"model.groups": "a-study"}}
    assert cost.counts_key(planned) == cost.counts_key(trial) == cost.counts_key(found) != cost.counts_key(run)


def test_work_is_passes_times_multiply_adds():
    model = MODELS["resnet9"].model_dump()
    passes = 45 * 1000 * 3 + 5_000 + 10_000
    assert cost.training(run_of(model), 256).work == passes * 284_895_232
    views = {"views": 4}
    assert cost.training(run_of(model, augmentation=views), 256).work == (4 * 45 * 1000 * 3 + 15_000) * 284_895_232


def test_a_search_worker_has_its_share_of_the_trials():
    run = run_of(MODELS["resnet9"].model_dump())
    study = {"run": run, "trials": 7}
    alone, third = (cost.search_worker(study, 256, workers) for workers in (1, 3))
    assert (alone.work, third.work) == (7 * cost.training(run, 256).work, 3 * cost.training(run, 256).work)


def test_a_hessian_keeps_a_vector_a_step_of_lanczos():
    run = run_of(MODELS["resnet9"].model_dump())
    few, many = (
        cost.hessian({"examples": 8, "iterations": 10, "lanczos_steps": steps}, run, 64).megabytes(0) for steps in (10, 1010)
    )
    assert 1000 * 2_447_946 * 4 / 1e6 * 0.98 < many - few < 1000 * 2_447_946 * 4 / 1e6


# --- what jobs ask for ---


JOBS = [*resources.OTHERS, *(name for name, stage in stages.STAGES.items() if stage.cost)]


def asked(planned: Any, job: str, found: cost.Cost | None = None, attempt: int = 1) -> dict[str, int]:
    """Return what a job of this cost asks for."""
    calls = {"runtime": {"attempt": attempt}, "mem_mb": {"attempt": attempt}, "gpu": {}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "cost_of", lambda plan, key: found)
        asks = resources.asked(planned, job, "name" if found else None)
        wildcards = SimpleNamespace(name="some")
        return {key: value(wildcards, **calls[key]) if callable(value) else value for key, value in asks.items()}


def a_cost(minutes: float, gigabytes: float = 1, **more: Any) -> cost.Cost:
    return cost.Cost((60 * minutes - cost.START) * 1e12, 0, int(gigabytes * 1e9), **more)


def test_a_retry_asks_for_more_up_to_the_limit(configuration):
    planned = configuration.plan()
    assert [asked(planned, "train", a_cost(400), attempt)["runtime"] for attempt in (1, 2, 4)] == [400, 800, 1440]
    assert [asked(planned, "train", a_cost(400, 2), attempt)["mem_mb"] for attempt in (1, 2, 3)] == [8000, 12000, 16000]
    assert [asked(planned, "prepare", None, attempt)["runtime"] for attempt in (1, 2)] == [120, 240]


def test_only_what_computes_asks_for_a_gpu(configuration):
    planned = configuration.plan()
    assert {job for job in JOBS if "gpu" in asked(planned, job)} == {
        "features",
        "search",
        "train",
        "hessian",
        "activations",
        "by_class",
        "attack",
    }
    assert not any("gpu" in asked(configuration.plan(scale="demo"), job) for job in JOBS)


def test_a_gpu_for_every_device_of_the_run(configuration):
    for_one, for_four = (asked(configuration.plan(), "train", a_cost(9, devices=n)) for n in (1, 4))
    assert (for_one["gpu"], for_four["gpu"], for_four["nodes"]) == (1, 4, 1)  # SLURM may take them from several machines
    assert for_four["mem_mb"] - for_one["mem_mb"] == 3 * 6000  # each process has its own


def test_cores_need_memory_where_they_do_the_work_of_a_gpu(configuration):
    on_gpus = asked(configuration.plan(), "train", a_cost(9, memory_a_core=10**9))["mem_mb"]
    planned = configuration.change("scales/demo.yaml", "  train: {", "  train: {threads: 3, ").plan(scale="demo")
    assert on_gpus == 6000 + 1000
    assert asked(planned, "train", a_cost(9, memory_a_core=10**9))["mem_mb"] == 2000 + 1000 + 3000


def test_the_largest_run_asks_for_more_than_the_smallest(configuration):
    planned = configuration.plan()
    small = run_of(MODELS["resnet9"].model_dump())
    large = run_of(MODELS["wrn28-10"].model_dump(), batch=15_000, epochs=100, augmentation={"views": 16})
    one, other = (asked(planned, "train", cost.training(run, 256)) for run in (small, large))
    assert one["runtime"] < 10 < other["runtime"] == 1440
    assert one["mem_mb"] < other["mem_mb"] < 16_000


def test_minutes_are_counted_with_all_of_a_run_s_graphics_cards(configuration):
    for_one, for_four = (asked(configuration.plan(), "train", a_cost(402, devices=n))["runtime"] for n in (1, 4))
    assert (for_one, for_four) == (402, 102)  # two of these are the start


def test_processes_that_share_the_cores_are_no_quicker(configuration):
    planned = configuration.plan(scale="demo")
    for_one, for_four = (asked(planned, "train", a_cost(4, devices=n))["runtime"] for n in (1, 4))
    assert for_one == for_four


BY_STAGE = {
    "search": lambda spec, run: cost.search_worker(spec, 256, 4),
    "train": lambda spec, run: cost.training(run, 256),
    "hessian": lambda spec, run: cost.hessian(spec, run, 256),
    "activations": cost.activations,
}


@pytest.mark.parametrize("stage", BY_STAGE)
def test_a_job_s_cost_is_that_of_its_stage_by_its_spec_and_the_scale_s_physical_batch(stage, configuration):
    planned = configuration.plan()
    name, spec = next(iter(planned.of(stage).items()))
    expected = BY_STAGE[stage](spec, planned.run_of((stage, name)))
    assert resources.cost_of(planned, (stage, name)) == expected
    asks = resources.asked(planned, stage, "work")
    assert asks["mem_mb"](SimpleNamespace(work=name), attempt=1) == 6000 + expected.megabytes(0)


def test_to_prepare_data_costs_next_to_nothing(configuration):
    planned = configuration.plan()
    assert [resources.cost_of(planned, ("data", name)) for name in planned.of("data")] == [None]


def test_data_in_files_and_a_great_many_features_are_not_counted_as_memory():
    model = MODELS["resnet9"].model_dump()
    few = run_of(model, [3, 224, 224])
    streamed = {**few, "data": {**few["data"], "streamed": True, "train": 5_000_000}}
    held, in_files = (cost.training(run, 8).memory for run in (few, streamed))
    assert held - in_files > 2 * 60_000 * 3 * 224 * 224 - 300 * 5_010_000
    head = {"family": "linear", "slug": "linear", "constant": 0.1}
    kinds = [{"kind": "features", "shape": [3072], "train": train} for train in (60_000, 1_281_167)]
    some, many = (cost.training({**few, "model": head, "data": {**few["data"], **kind}}, 8).memory for kind in kinds)
    assert some - many == 60_000 * 3072 * 6  # of the many only the test examples are held


def test_an_attack_costs_its_models_at_every_step_with_all_examples_and_views(configuration):
    run = {"data": {"shape": [1, 28, 28], "classes": 10, "train": 60000, "validation": 59900, "test": 10000}}
    run |= {
        "model": {"family": "lenet", "slug": "lenet", "kernels": [8, 4]},
        "recipe": {"batch": 64, "steps": 50, "augmentation": None},
    }
    of_models = {"by": "models", "models": 1000, "targets": [1, 2], "space": {"recipe.steps": [50, 100]}, "tried": 10}
    forward = cost.counts_of(run).multiply_adds
    assert forward == 14 * 14 * 16 * 64 + 4 * 32 * 16 * 16 + 32 * 32 + 32 * 10
    one = cost.attack({"run": run, **of_models})
    assert one.work == 2 * (1000 + 4 * 10) * 100 * 101 * 3 * forward
    with_views = run | {"recipe": run["recipe"] | {"augmentation": {"views": 16}}}
    assert cost.attack({"run": with_views, **of_models}).work == 16 * one.work
    assert cost.attack({"run": run, "by": "canaries", "models": 10000, "space": {}}).steps == 26 * 50
