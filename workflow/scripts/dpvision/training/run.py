"""A run as a job: start or go on, checkpoint, leave when told to, write the record."""

import logging
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from dpvision.data.prepared import data_part, load
from dpvision.errors import Interrupted
from dpvision.files import digest, read_json
from dpvision.logs import Progress
from dpvision.memory import limit_mb
from dpvision.plan import specs
from dpvision.privacy.ledger import spent
from dpvision.privacy.mechanism import solved
from dpvision.provenance import Origin
from dpvision.training.checkpoint import Checkpoint
from dpvision.training.devices import Devices, together
from dpvision.training.fit import Training
from dpvision.training.leaving import asked_to_leave, leaving_on_signals
from dpvision.training.owner import owned
from dpvision.training.record import finished_since, metrics, show, write_record
from dpvision.training.underway import UnderWay

log = logging.getLogger(__name__)


def train(
    spec: specs.Spec,
    data: Path,
    studies: list[Path],
    record: Path,
    checkpoint: Path,
    decided: Path,
    physical_batch: int,
    memory_mb: float,
    begun: float,
    start: Path | None = None,
) -> None:
    """Train as `spec` says and leave the record; `studies` are the best.json of the searches that it names.

    What another process finished since `begun`, when this training was asked for, is not done again.
    """
    found = {best["study"]: best for best in map(read_json, studies)}
    spec = solved(with_findings(spec, found))
    with owned(record / ".owner") as still_ours:
        if finished_since(begun, record, spec):
            log.info("another process has finished this run meanwhile")
            show(record)
            Checkpoint(checkpoint, still_ours).remove()
            return
        work = (spec, data, found, record, checkpoint, decided, physical_batch, memory_mb, start)
        with together(specs.device_count(spec), take_part, *work) as devices:
            take_part(devices, *work, still_ours)


def take_part(
    devices: Devices,
    spec: specs.Spec,
    data: Path,
    found: dict[str, dict],
    record: Path,
    checkpoint: Path,
    decided: Path,
    physical_batch: int,
    memory_mb: float,
    start: Path | None = None,
    still_ours: Callable[[], None] = lambda: None,
) -> None:
    """Train as one of the processes of a run, of which the first keeps the state and leaves the record."""
    origin = Origin(" ".join(["dpvision.training.run", *specs.modules_of(spec)]))
    with leaving_on_signals():
        place = Checkpoint(checkpoint, still_ours)
        device = devices.device()
        memory_mb = limit_mb(device, memory_mb / devices.count if device.type == "cpu" else memory_mb)
        prepared = load(data, data_part(spec))
        training = Training(spec, prepared, physical_batch, device, decided, memory_mb, devices, start)
        session = _Session(training, place, origin, prepared.digest, record.name)
        try:
            with closing(session.progress):
                session.report()
                training.run(session.after_step, session.after_epoch)
            if training.made < training.planned:
                ended = "ended after step %d of %d, as the recipe's `stop` says; the ledger's ε is that of all planned steps"
                log.info(ended, training.made, training.planned)
            devices.compare(training.network)
            if not devices.first:
                metrics(training)  # evaluates its share of the record's metrics with the first process
                return
            made_by = origin.provenance(
                spec, data=prepared.digest, sessions=session.all(), resumed=bool(session.before), clipping=training.choices
            )
            write_record(record, training, spent(spec, training.mechanism, found), made_by, still_ours)
        except Interrupted:
            session.save()
            (number,) = devices.largest(asked_to_leave())
            name = signal.Signals(number).name
            session.report(name)
            raise Interrupted(
                f"stopped by {name} at step {training.made} of {training.planned}: the state is "
                f"kept in {place.file}, the same command continues from there"
            ) from None
        place.remove()


class _Session:
    """One process's time on a run: it goes on where the last one left, keeps the state and shows how far it is."""

    def __init__(self, training: Training, place: Checkpoint, origin: Origin, data: str, name: str) -> None:
        self.training, self.place, self.origin, self.data = training, place, origin, data
        self.devices = training.devices
        self.before = self._resume()
        self.underway = UnderWay(place.folder, place.still_ours)
        self.underway.kept = training.made
        self.progress = Progress(name, training.planned)

    def _resume(self) -> list[dict[str, Any]]:
        """Restore the state that is kept, and return the sessions that led to it."""
        state = self.place.load(digest(self.training.spec))
        if state is None:
            return []
        self.training.restore(state)
        log.info("continues from step %d of %d", self.training.made, self.training.planned)
        sessions: list[dict[str, Any]] = state["sessions"]
        return sessions

    def all(self) -> list[dict[str, Any]]:
        """Describe the processes that made the run, this one last; a run that was never interrupted has one."""
        made_of = {"code": self.origin.code, "commit": self.origin.commit, "lock": self.origin.lock, "data": self.data}
        times = {"started": self.origin.started, "seconds": self.origin.seconds(), "to_step": self.training.made}
        return [*self.before, times | made_of]

    def after_step(self, training: Training) -> None:
        self.progress.step(training.made, lambda: _line(training))
        (due,) = self.devices.largest(self.devices.first and self.place.due())
        if due:
            self.save()
        if self.underway.due():
            self.report()

    def after_epoch(self, training: Training) -> None:
        self.progress.line(_epoch_line(training))
        self.report()

    def save(self) -> None:
        training = self.training
        self.devices.compare(training.network)
        if self.devices.first:
            self.place.save({**training.state(), "spec_digest": digest(training.spec), "sessions": self.all()})
            self.underway.kept = training.made

    def report(self, interrupted_by: str | None = None) -> None:
        if self.devices.first:
            self.underway.write(self.training, self.progress.seconds_left(self.training.made), interrupted_by)


def with_findings(spec: specs.Spec, found: dict[str, dict]) -> specs.Spec:
    """Return the spec with what the searches found in place of their names, which stay beside."""
    keys = specs.searched_keys(spec)
    return specs.with_findings(spec, keys, {key: found[study]["values"][key] for key, study in keys.items()})


def _line(training: Training) -> str:
    last = training.history[-1] if training.history else None
    level = "" if training.epsilon is None else f"{_epsilon(training)} {training.epsilon:.2f}  "
    validation = f"validation {last['validation_top1']:.1%}  " if last and training.chooser else ""
    return level + validation + (f"test {last['test_top1']:.1%}" if last else "")


def _epsilon(training: Training) -> str:
    return "simulated ε" if training.divisor > 1 else "ε"


def _epoch_line(training: Training) -> str:
    row = training.history[-1]
    private = ""
    if training.epsilon is not None:
        private = f"  {_epsilon(training)} {training.epsilon:.3f}  clipped {row['clipped'] or 0:.0%}"
    validation = ""
    if training.chooser:
        validation = f"  validation loss {row['validation_loss']:.4f} top-1 {row['validation_top1']:.2%}"
    return (
        f"epoch {row['epoch']}/{len(training.ends)}  step {row['step']}  lr {row['learning_rate']:.3g}{validation}"
        f"  test top-1 {row['test_top1']:.2%}{private}  {row['seconds']:.1f} s"
    )
