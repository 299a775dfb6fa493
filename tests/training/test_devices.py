"""Several processes make the steps that one would, end together however one of them ends, and go on to the same bits."""

import itertools
import math
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jobs
import psutil
import pytest
import torch
from safetensors.torch import load_file

from dpvision.data.prepared import data_part, load
from dpvision.errors import UserError
from dpvision.plan import specs
from dpvision.training import devices as devices_module
from dpvision.training import step as step_module
from dpvision.training.devices import ALONE, Devices, Several, joined, together
from dpvision.training.fit import Training
from dpvision.training.step import Step

SGD = {"name": "sgd", "learning_rate": 0.5, "momentum": 0.5}
VIEWS = {"pad": 1, "flip": 0.5, "views": 3, "include_original": False}
PHYSICAL = 16


# --- processes that do the same ---


def in_processes(folder: Path, count: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return what `function(devices, *arguments)` gives in each of `count` processes."""
    names = [folder / f"{rank}.pt" for rank in range(count)]
    started = [jobs.CONTEXT.Process(target=_process, args=(rank, count, folder, function, arguments)) for rank in range(count)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
        process.kill()
    if any(process.exitcode for process in started):
        raise RuntimeError("a process failed")
    return [torch.load(name) for name in names]


def _process(rank: int, count: int, folder: Path, function: Callable[..., Any], arguments: tuple) -> None:
    torch.set_num_threads(1)
    devices_module.PATIENCE = 0.0
    with joined(rank, count, folder / "meeting") as devices:
        torch.save(function(devices, *arguments), folder / f"{rank}.pt")


def trained(devices: Devices, data: Path, spec: specs.Spec, steps: int, bug: str | None = None) -> dict[str, Any]:
    """Train for some steps in float64; return the whole state, and the samples that were drawn."""
    if bug:
        BUGS[bug]()
    training = Training(spec, load(data, data_part(spec)), PHYSICAL, torch.device("cpu"), devices=devices)
    training.network.double()
    if training.average:
        training.average.network.double()
    for examples in (training.train, training.validation, training.test):
        examples.mean = examples.mean.double()
    samples, draw = [], training.step.sampler.sample
    training.step.sampler.sample = lambda: samples.append(draw()) or samples[-1]  # type: ignore[func-returns-value, method-assign]
    training.planned, training.ends = steps, [end for end in training.ends if end < steps] + [steps]
    training.run()
    return {**training.state(), "samples": samples, "epsilon": training.epsilon}


def close(ours: Any, theirs: Any) -> None:
    """Check that both are equal up to rounding in float64, whatever they hold; but for times and choices."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours.keys() - {"seconds", "choices"}:
            close(ours[key], theirs[key])
    elif isinstance(ours, list | tuple):
        for mine, yours in zip(ours, theirs, strict=True):
            close(mine, yours)
    elif isinstance(ours, torch.Tensor) and ours.is_floating_point():
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-8, check_dtype=False)
    elif isinstance(ours, torch.Tensor):
        assert torch.equal(ours, theirs)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9)
    else:
        assert ours == theirs


def without_times(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [row | {"seconds": 0} for row in state["history"]]


def is_as_on_one(folder: Path, data: Path, count: int, spec: specs.Spec, steps: int, bug: str | None = None) -> None:
    one = trained(ALONE, data, spec, steps)
    first, *others = in_processes(folder, count, trained, data, spec, steps, bug)
    close(first, one)
    assert first["epsilon"] == one["epsilon"]
    for other in others:
        assert all(torch.equal(other["network"][name], first["network"][name]) for name in first["network"])
        assert other["choices"] == first["choices"]
        assert without_times(other) == without_times(first)


@pytest.mark.parametrize(
    ("count", "steps", "changes"),
    [
        pytest.param(2, 13, {}, id="as in the paper"),
        pytest.param(3, 13, {"recipe.augmentation": VIEWS, "recipe.averaging": {"decay": 0.8}}, id="views and an average"),
        pytest.param(2, 13, {"budget": None, "recipe.optimizer": SGD}, id="without a budget"),
        pytest.param(
            3, 20, {"recipe.batch": 2, "recipe.augmentation": VIEWS}, id="samples smaller than the processes are many"
        ),
    ],
)
def test_the_steps_are_those_of_one_process_up_to_rounding(count, steps, changes, digits, run_spec, tmp_path):
    """Samples, views, noise, losses, norms, evaluation, optimiser, schedule and average all agree."""
    is_as_on_one(tmp_path, digits, count, run_spec({**changes, "recipe.gpus": count}), steps)


def noise_of_every_process() -> None:
    Several.first = True  # type: ignore[assignment, method-assign]


def no_noise() -> None:
    step_module.noise_like = lambda tensors, *_: [torch.zeros_like(tensor) for tensor in tensors]  # type: ignore[attr-defined]


def nothing_added_up() -> None:
    Several.add_up = lambda self, tensors: None  # type: ignore[method-assign]


def parts_that_overlap() -> None:
    Several.share = lambda self, whole: whole[self.rank * len(whole) // 3 :][: len(whole) - len(whole) // 2]  # type: ignore[method-assign]


def everybody_takes_all() -> None:
    Several.share = lambda self, whole: whole  # type: ignore[method-assign]


def views_drawn_by_each_for_its_part() -> None:
    whole = Step._physical_batches

    def drawn_apart(self: Step, sample: torch.Tensor) -> Any:
        devices, self.devices = self.devices, ALONE
        batches = list(whole(self, devices.share(sample)))
        self.devices = devices
        return batches

    Step._physical_batches = drawn_apart  # type: ignore[method-assign]


PLANTED = (
    noise_of_every_process,
    no_noise,
    nothing_added_up,
    parts_that_overlap,
    everybody_takes_all,
    views_drawn_by_each_for_its_part,
)
BUGS = {bug.__name__: bug for bug in PLANTED}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_noticed(bug, digits, run_spec, tmp_path):
    with pytest.raises(AssertionError):
        is_as_on_one(tmp_path, digits, 2, run_spec({"recipe.augmentation": VIEWS, "recipe.gpus": 2}), 2, bug)


def shared(devices: Devices, length: int) -> dict[str, Any]:
    whole = torch.arange(length)
    part = devices.share(whole)
    return {"part": part.tolist(), "gathered": devices.gather(part.float(), length).tolist()}


def test_parts_are_the_whole_in_order_and_gathered_again_whatever_its_length(tmp_path):
    for length in (0, 1, 2, 7, 100):
        (folder := tmp_path / str(length)).mkdir()
        found = in_processes(folder, 3, shared, length)
        assert [i for each in found for i in each["part"]] == list(range(length))
        assert all(each["gathered"] == list(range(length)) for each in found)


def drift(devices: Devices) -> str:
    network = torch.nn.Linear(3, 2)
    torch.nn.init.ones_(network.weight)
    torch.nn.init.ones_(network.bias)
    devices.compare(network)
    if not devices.first:
        with torch.no_grad():
            network.weight[1, 2] = math.nextafter(1, 2) if network.weight.dtype == torch.float64 else 1 + 2**-23
    with pytest.raises(RuntimeError, match="no longer have the same weights") as error:
        devices.compare(network)
    return str(error.value)


def test_weights_that_differ_in_their_last_bit_are_an_error_of_every_process(tmp_path):
    assert len(in_processes(tmp_path, 2, drift)) == 2


# --- jobs ---


class Place:
    """The place of a run on two devices: its record, its checkpoint and its log."""

    def __init__(self, folder: Path, data: Path, spec: specs.Spec) -> None:
        self.record, self.checkpoint, self.log = folder / "run", folder / "checkpoint", folder / "log"
        self.state = self.checkpoint / "state.pt"
        self.arguments = (spec, data, [], self.record, self.checkpoint, data.parent / "choices", 64, 4000, 0.0)

    def start(self, function: Callable[..., None] = jobs.train) -> jobs.Job:
        return jobs.Job(self.log, function, *self.arguments)

    def said(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def bits(self) -> dict[str, Any]:
        rows = [line.rsplit(",", 1)[0] for line in (self.record / "history.csv").read_text().splitlines()]  # seconds come last
        files = ("spec.json", "metrics.json", "ledger.json", "weights.safetensors")
        return {"history.csv": rows, **{name: (self.record / name).read_bytes() for name in files}}


@pytest.fixture
def place(tmp_path, digits, run_spec) -> Callable[..., Place]:
    return lambda changes=None, name="here": Place(tmp_path / name, digits, run_spec({"recipe.gpus": 2, **(changes or {})}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, digits, run_spec) -> Place:
    """Return a run on two devices that nothing interrupted, of a job with two threads."""
    here = Place(tmp_path_factory.mktemp("whole"), digits, run_spec({"recipe.gpus": 2}))
    assert here.start(jobs.train_on_two_threads).end() == 0, here.said()
    return here


def other_process(job: jobs.Job) -> psutil.Process:
    """Return the other process once it is one: its parent waits until then, and would for ever if it were stopped."""
    first = psutil.Process(job.process.pid)
    job.reaches(lambda: any("dpvision.training.peer" in other.cmdline() for other in first.children()))
    (other,) = first.children()
    return other


def test_the_record_is_that_of_one_device_up_to_rounding(whole, digits, run_spec, tmp_path):
    one = Place(tmp_path, digits, run_spec())
    assert one.start().end() == 0
    assert (whole.record / "ledger.json").read_bytes() == (one.record / "ledger.json").read_bytes()
    assert sorted(file.name for file in whole.record.glob("[!.]*")) == sorted(specs.RECORD)
    assert not whole.checkpoint.exists()
    ours, theirs = (load_file(place.record / "weights.safetensors") for place in (whole, one))
    for name in theirs:  # by 40 steps of NAdam, each of which magnifies what differs
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=2e-2)


def test_the_processes_share_the_threads_of_the_job(whole):
    assert '"threads": 1' in (whole.record / "provenance.json").read_text()


def test_a_run_on_two_devices_repeats_to_the_bit_beside_another(whole, place):
    both = [place(name=name) for name in ("one", "other")]
    started = [here.start() for here in both]
    assert [job.end() for job in started] == [0, 0]
    assert all(here.bits() == whole.bits() for here in both)


@pytest.mark.parametrize("told", ["first", "other", "all"])
def test_told_to_leave_all_stop_at_one_step_and_go_on_to_the_same_bits(told, whole, place):
    here = place()
    job = here.start(jobs.train_without_checkpoints)
    job.reaches(lambda: "epoch 1/4" in here.said())
    first, other = psutil.Process(job.process.pid), other_process(job)
    for process in {"first": [first], "other": [other], "all": [other, first]}[told]:
        process.send_signal(signal.SIGTERM)
    assert job.end() == 1
    made = torch.load(here.state)["made"]
    assert f"stopped by SIGTERM at step {made} of 40: the state is kept in {here.state}" in here.said()
    assert "Traceback" not in here.said()
    assert not other.is_running()
    assert [file.name for file in here.checkpoint.glob("*.pt")] == ["state.pt"]
    assert here.start().end() == 0
    assert f"continues from step {made} of 40" in here.said()
    assert here.bits() == whole.bits()


def test_a_process_that_is_killed_ends_the_job_with_a_message_and_the_next_goes_on(whole, place):
    here = place()
    job = here.start()
    job.reaches(here.state.exists)
    begun = time.monotonic()
    other_process(job).kill()
    assert job.end() == 1
    assert time.monotonic() - begun < 5
    assert "process 1 (of 2, the first is 0) of this run was ended by SIGKILL; the same command continues" in here.said()
    assert "Traceback" not in here.said()
    assert here.start().end() == 0
    assert here.bits() == whole.bits()


def test_when_the_first_process_is_killed_the_others_end_and_say_nothing(place):
    here = place()
    job = here.start()
    job.reaches(here.state.exists)
    other, said = other_process(job), here.said()
    job.kill()
    other.wait(5)
    assert here.said().startswith(said)
    assert "Traceback" not in here.said()


def wait_for_nothing() -> None:
    with together(2, ("no", "work")) as devices:
        for _ in itertools.count():
            devices.from_first(None)


def test_an_error_in_another_process_reaches_the_log_with_its_traceback_and_ends_the_job(tmp_path):
    log = tmp_path / "log"
    assert jobs.Job(log, wait_for_nothing).end() == 1
    said = log.read_text()
    assert "process 1: failed:\nTraceback" in said
    assert "TypeError: take_part()" in said
    assert said.count("Traceback") == 1
    assert said.rstrip().endswith("of this run failed, as the log says; the same command continues from the last checkpoint")


def wait_a_second_for_others() -> None:
    devices_module.TIMEOUT, devices_module.PATIENCE = timedelta(seconds=1), 0.0
    wait_for_nothing()


def test_a_process_that_hangs_is_not_waited_for_for_ever(tmp_path):
    log = tmp_path / "log"
    job = jobs.Job(log, wait_a_second_for_others)
    other_process(job).suspend()
    assert job.end() == 1
    assert "timeout" in log.read_text()


def test_an_error_in_the_first_process_is_its_own_and_ends_the_others(place):
    here = place()
    here.checkpoint.mkdir(parents=True)
    here.state.write_bytes(b"nonsense")
    job = here.start()
    assert job.end() == 1
    assert "state.pt cannot be read" in here.said()
    assert not [p for p in psutil.process_iter() if p.ppid() == job.process.pid]


# --- one ---


def test_one_device_starts_no_other_process(monkeypatch):
    monkeypatch.delattr(devices_module.subprocess, "Popen")
    with together(1, ()) as devices:
        assert devices is ALONE
    assert not torch.distributed.is_initialized()


def test_fewer_graphics_cards_than_the_recipe_asks_for_are_an_error_before_anything_starts(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match=r"asks for gpus: 2, but this job sees 1"), together(2, ()):
        pass
