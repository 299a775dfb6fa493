"""Jobs in processes of their own, to be killed. A server that has imported torch forks them, so that they start quickly."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["dpvision.search.study", "torch._dynamo"])  # the second is what an optimiser imports


class Job:
    """A call of a function in a process of its own, with a log as a rule's script has one."""

    def __init__(self, log: Path, function: Callable[..., None], *arguments: Any) -> None:
        self.process = CONTEXT.Process(target=_run, args=(str(log), function, *arguments))
        self.process.start()

    def end(self, seconds: float = 60) -> int | None:
        """Return the exit code. Kill a job without an end and what it started: the tests' end would wait for them."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            for process in [*psutil.Process(self.process.pid).children(recursive=True), self.process]:
                process.kill()
            raise AssertionError("still running")
        return self.process.exitcode

    def kill(self, number: int = signal.SIGKILL) -> int | None:
        os.kill(self.process.pid or 0, number)
        return self.end()

    def reaches(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        """Wait until the condition holds, while the job runs."""
        begun = time.monotonic()
        while not condition():
            assert self.process.is_alive(), f"ended with {self.process.exitcode}"
            assert time.monotonic() - begun < seconds, "never happened"
            time.sleep(0.002)


def _run(log: str, function: Callable[..., None], *arguments: Any) -> None:
    from dpvision import logs

    with logs.job(log):
        function(*arguments)


def train(*arguments: Any) -> None:
    """Run training.run.train with a checkpoint after every step."""
    _train(0.0, *arguments)


def train_on_two_threads(*arguments: Any) -> None:
    _train(0.0, *arguments, threads=2)


def train_without_checkpoints(*arguments: Any) -> None:
    """Train without checkpoints, but for those that it leaves behind when told to leave."""
    _train(1e9, *arguments)


def train_with_an_endless_step(*arguments: Any) -> None:
    """Train with a fourth step that makes a file `endless` beside the record and ends only when told to leave."""
    from dpvision.training.leaving import asked_to_leave
    from dpvision.training.step import Seen, Step

    step, batches, record = Step.__call__, Step._physical_batches, arguments[3]
    begun = 0

    def call(self: Step) -> Seen:
        nonlocal begun
        begun += 1

        def endless(sample: Any) -> Iterator[Any]:
            cut = batches(self, sample)
            yield next(cut)
            record.with_name("endless").touch()
            while not asked_to_leave():
                time.sleep(0.01)
            yield from cut

        if begun == 4:
            self._physical_batches = endless  # type: ignore[method-assign]
        return step(self)

    Step.__call__ = call  # type: ignore[method-assign]
    train_without_checkpoints(*arguments)


def train_until(within: str, made: int, *arguments: Any) -> None:
    """Train until told to leave: when it begins `within`, a method of `Training`, with so many steps made."""
    from dpvision.training.fit import Training

    method = getattr(Training, within)

    def told(self: Training, *arguments: Any) -> Any:
        if self.made == made and (within != "evaluate" or len(self.history) == len(self.ends)):
            os.kill(os.getpid(), signal.SIGUSR1)
        return method(self, *arguments)

    setattr(Training, within, told)
    train_without_checkpoints(*arguments)


def train_impatiently(*arguments: Any) -> None:
    """Train, and take an owner for dead that shows no life for a fifth of a second."""
    _train(0.0, *arguments, looks=4)


def _train(seconds: float, *arguments: Any, looks: int = 10**9, threads: int = 1) -> None:
    from dpvision.training import checkpoint, owner, run
    from dpvision.training.machine import settle

    checkpoint.LEAST_SECONDS, checkpoint.SHARE = seconds, 1e9
    owner.INTERVAL, owner.LOOKS = 0.05, looks
    settle(threads)
    run.train(*arguments)


def work(*arguments: Any) -> None:
    """Run search.study.work with a checkpoint after every step, and look at the others' trials more often."""
    from dpvision.search import study
    from dpvision.training import checkpoint
    from dpvision.training.machine import settle

    study.PAUSE, checkpoint.LEAST_SECONDS, checkpoint.SHARE = 0.05, 0.0, 1e9
    settle(1)
    study.work(*arguments)


def work_until(within: str, made: int, *arguments: Any) -> None:
    """Work until killed: when it begins `within`, a method of `Training`, with so many steps of a trial made."""
    from dpvision.training.fit import Training

    method = getattr(Training, within)

    def killed(self: Training, *arguments: Any) -> Any:
        if self.made == made:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(self, *arguments)

    setattr(Training, within, killed)
    work(*arguments)


def work_until_moment(moment: int, *arguments: Any) -> None:
    """Work until killed at this moment. Every step, epoch, checkpoint and line of the journal counts as one."""
    from optuna.storages.journal import JournalFileBackend

    from dpvision.training.checkpoint import Checkpoint
    from dpvision.training.fit import Training

    passed = 0

    def killed_at(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal passed
            passed += 1
            if passed == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return method(*arguments, **options)

        return call

    for owner, name in [
        (Training, "_make_step"),
        (Training, "_end_epoch"),
        (Checkpoint, "save"),
        (JournalFileBackend, "append_logs"),
    ]:
        setattr(owner, name, killed_at(getattr(owner, name)))
    work(*arguments)


def work_until_told(made: int, *arguments: Any) -> None:
    """Work until told to leave with so many steps of a trial made. Write no checkpoint before that."""
    from dpvision.search import study
    from dpvision.training.fit import Training

    step = Training._make_step

    def told(self: Training) -> None:
        if self.made == made:
            os.kill(os.getpid(), signal.SIGUSR1)
        step(self)

    Training._make_step = told  # type: ignore[method-assign]
    study.work(*arguments)
