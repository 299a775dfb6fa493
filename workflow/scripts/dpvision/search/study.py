"""One study, worked on by any number of processes, and what comes out of it.

The journal is an append-only file that all workers read and write. A trial belongs to the process that asked
for it and that holds the trial's lock file; when that process dies, whoever asks next takes the trial over, with
its number and its values, and continues from its checkpoint. Failed trials, which older code left, do not count.
"""

import csv
import logging
import math
import os
import random
import re
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from dpvision.data.prepared import data_part, load
from dpvision.errors import Interrupted, UserError
from dpvision.files import canonical_json, digest, write_csv, write_json
from dpvision.locks import held, is_held
from dpvision.logs import Progress
from dpvision.plan import space, specs
from dpvision.privacy.ledger import price
from dpvision.privacy.mechanism import solved, trial_mechanisms
from dpvision.provenance import Origin
from dpvision.training.checkpoint import Checkpoint
from dpvision.training.fit import Training
from dpvision.training.leaving import asked_to_leave, leaving_on_signals
from dpvision.training.machine import device
from dpvision.training.randomness import stream_seed

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
TAKEN = (*FINISHED, TrialState.RUNNING)
SEED = "seed"  # the journal's name for the seed of a training in a covered search
MEASURED = re.compile("averaged_|test_|validation_(?!top1$)")  # columns of a history; the other is in the table already
PAUSE = 1.0  # seconds between two looks at a study whose last trials are with others

log = logging.getLogger(__name__)


def distribution(values: space.Values) -> BaseDistribution:
    """Return a list of choices, or a range, as Optuna has it."""
    if isinstance(values, list):
        return CategoricalDistribution(values)
    kind, low, high = space.range_of(values)
    return IntDistribution(low, high) if kind == "integers" else FloatDistribution(low, high, log=kind == "log_uniform")


def geometric(mean: int) -> int:
    """Draw a number of trials with this mean, from the operating system's entropy."""
    count, again = 1, secrets.SystemRandom()
    while again.random() * mean >= 1:
        count += 1
    return count


class Sampler(optuna.samplers.TPESampler):
    """A sampler of what has not been tried, by TPE, chance or in order: a training repeated with one seed has one outcome."""

    def __init__(self, values: dict[str, space.Values], seed: int | None, kind: str = "tpe") -> None:
        """Make a sampler of a study's values.

        Args:
            values: The space: the values that each key can have.
            seed: What decides the values that are drawn; None for the operating system's entropy.
            kind: The search's `sampler`.
        """
        super().__init__(seed=seed, multivariate=False)
        self.kind = kind
        self.random = random.Random(seed)
        self.chance = optuna.samplers.RandomSampler(seed)
        self.sizes = {key: space.count(here) for key, here in values.items()}

    def sample_independent(self, study: Any, trial: FrozenTrial, param_name: str, param_distribution: Any) -> Any:
        tried = [t.params for t in study.get_trials(deepcopy=False, states=TAKEN) if t.number != trial.number]
        keys = list(self.sizes)
        left = math.prod(self.sizes[key] for key in keys[keys.index(param_name) + 1 :])  # combinations below each choice

        def open_to(choice: Any) -> bool:
            so_far = {**trial.params, param_name: choice}
            return sum(so_far.items() <= params.items() for params in tried) < left

        if self.kind == "tpe":
            proposed = super().sample_independent(study, trial, param_name, param_distribution)
            if open_to(proposed):
                return proposed
        if isinstance(param_distribution, FloatDistribution) or self.kind == "covered":
            return self.chance.sample_independent(study, trial, param_name, param_distribution)
        whole = isinstance(param_distribution, IntDistribution)
        every = range(param_distribution.low, param_distribution.high + 1) if whole else param_distribution.choices
        choices = [choice for choice in every if open_to(choice)]
        return choices[0] if self.kind == "grid" else self.random.choice(choices)


class JournalLock(JournalFileOpenLock):
    """The lock of a worker that writes to the journal. Optuna's own locks are files, which outlive a killed worker."""

    def __init__(self, journal: Path) -> None:
        super().__init__(str(journal))
        self.journal = journal
        self.ours = ExitStack()

    def acquire(self) -> bool:
        self.ours.enter_context(held(self.journal.with_suffix(".lock")))
        written = self.journal.read_bytes()
        if not written.endswith(b"\n"):  # a worker was killed in the middle of a line
            os.truncate(self.journal, written.rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        self.ours.close()


class Study:
    def __init__(self, spec: specs.Spec, folder: Path) -> None:
        self.spec, self.folder = spec, folder
        folder.mkdir(parents=True, exist_ok=True)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        journal = folder / "journal.log"
        with self._alone():
            self.optuna = optuna.create_study(
                storage=JournalStorage(JournalFileBackend(str(journal), JournalLock(journal))),
                study_name=specs.study_name(spec),
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.ThresholdPruner(lower=spec["prune_below"], n_warmup_steps=spec["prune_after"]),
            )
            self.covered = specs.is_covered(spec)
            self._refuse_known_values()
            self.count: int = self._drawn_count() if self.covered else spec["trials"]

    def _drawn_count(self) -> int:
        """Return the number of trials, which the first worker draws: geometric, from the operating system's entropy."""
        if "trials" not in self.optuna.user_attrs:
            self.optuna.set_user_attr("trials", geometric(self.spec["trials"]))
        return int(self.optuna.user_attrs["trials"])

    def _alone(self) -> Any:
        """Let one worker at a time ask for a trial, so that two workers never take the same values."""
        return held(self.folder / "asking.lock")

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Return the trials in these states; all of them if none is named."""
        return self.optuna.get_trials(deepcopy=False, states=states or None)

    def complete(self) -> bool:
        return len(self.trials(*FINISHED)) >= self.count

    @contextmanager
    def next_trial(self) -> Iterator[optuna.Trial | None]:
        """Yield a trial of our own while inside; none while those that are missing are all with living workers."""
        with ExitStack() as mine:
            with self._alone():
                trial = self._left_behind()
                if trial is None and len(self.trials(*TAKEN)) < self.count:
                    trial = self._ask()
                if trial is not None:
                    mine.enter_context(held(self._lock(trial.number)))
            yield trial

    def _left_behind(self) -> optuna.Trial | None:
        """Return the first trial whose worker died before it had ended."""
        for number in [trial.number for trial in self.trials(TrialState.RUNNING)]:
            if is_held(self._lock(number)):
                continue
            there = self.optuna.get_trials(deepcopy=False)[number]
            if there.state == TrialState.RUNNING:  # else its worker ended it since, and then let go of it
                log.info("trial %d was left behind by its worker: it goes on here", number)
                return self._drawn(optuna.Trial(self.optuna, there._trial_id))
        return None

    def _ask(self) -> optuna.Trial:
        return self._drawn(self.optuna.ask())

    def _drawn(self, trial: optuna.Trial) -> optuna.Trial:
        """Return a trial with all of its values; those that a worker before had not come to draw are drawn now.

        Each is drawn by a seed of its own, which the trial and the keys before it name, so it is the same whoever draws.
        In a covered search values and the seed of the training come from the operating system's entropy: the seed in the
        spec is published, and would tell from the best values which trial they are of. The journal keeps what was drawn.
        """
        if self.covered and SEED not in trial.user_attrs:
            trial.set_user_attr(SEED, secrets.randbelow(2**32))
        drawn = f"trial {trial.number}"
        for key, values in self.spec["space"].items():
            seed = None if self.covered else stream_seed(self.spec["seed"], drawn) % 2**32
            self.optuna.sampler = Sampler(self.spec["space"], seed, self.spec.get("sampler", "tpe"))
            trial._suggest(key, distribution(values))  # as Optuna's own `ask`; a value that was drawn stays
            drawn += f" {key}"
        return trial

    def _refuse_known_values(self) -> None:
        """Raise if an older version drew values of a covered search: it drew them from the seed that the spec publishes."""
        if self.covered and any(trial.params and SEED not in trial.user_attrs for trial in self.trials()):
            raise UserError(
                f"{self.folder}: an older version drew the values of these trials from the search's seed, which is "
                "published: the best values tell which trial they are of, and no theorem covers that. Delete this folder "
                "and search again"
            )

    def _lock(self, number: int) -> Path:
        return self.folder / "trials" / f"{number}.lock"

    def trial_folder(self, number: int) -> Path:
        """Return where a trial leaves its history.csv."""
        return self.folder / "trials" / str(number)

    def checkpoint(self, number: int) -> Checkpoint:
        """Return the state of a trial that has not ended."""
        return Checkpoint(self.trial_folder(number) / "checkpoint")


def work(
    spec: specs.Spec,
    data: Path,
    folder: Path,
    done: Path,
    decided: Path,
    physical_batch: int,
    memory_mb: float,
    start: Path | None = None,
) -> None:
    """Train trials until the study has all of them; `done` says which were ours, `start` is what they begin with."""
    if specs.chooser(spec["run"]) != "validation":
        raise UserError(
            f"the search {specs.study_name(spec)} compares its trials by held-out examples, and no examples are held "
            "out of its data (data.validation = 0); hold some out for it, or name the values in the place of the search"
        )
    prepared = load(data, data_part(spec["run"]))
    study = Study(spec, folder)
    ours = []
    with leaving_on_signals():
        while not study.complete():
            if number := asked_to_leave():
                raise Interrupted(f"stopped by {signal.Signals(number).name} between two trials: the same command continues")
            with study.next_trial() as trial:
                if trial is None:
                    time.sleep(PAUSE)
                    continue
                run = solved(_run_of(spec, trial))
                log.info("trial %d: %s", trial.number, canonical_json(trial.params))
                try:
                    training = Training(run, prepared, physical_batch, device(), decided, memory_mb, start=start)
                    value = _train(study, trial, run, training)
                except optuna.TrialPruned:
                    study.optuna.tell(trial, state=TrialState.PRUNED)
                else:
                    study.optuna.tell(trial, value)
                study.checkpoint(trial.number).remove()
                ours.append(trial.number)
    write_json(done, {"trials": ours})


def _run_of(spec: specs.Spec, trial: optuna.Trial) -> specs.Spec:
    """Return the run of a trial; in a covered search each trial has weights and noise of its own, also where values repeat."""
    run = specs.with_values(spec["run"], trial.params)
    return {**run, "seed": trial.user_attrs[SEED]} if specs.is_covered(spec) else run


def _train(study: Study, trial: optuna.Trial, run: specs.Spec, training: Training) -> float:
    """Return what the search maximises, after the last step; given up where the pruner says so.

    The pruner looks at accuracies, whatever the objective. An epoch is reported before a checkpoint has it, so that what a
    resumed trial repeats was reported already.
    """
    place, spec_digest = study.checkpoint(trial.number), digest(run)
    reported = study.optuna.get_trials(deepcopy=False)[trial.number].intermediate_values
    last = max(reported, default=0)
    if state := place.load(spec_digest):
        training.restore(state)
        log.info("trial %d continues from step %d of %d", trial.number, training.made, training.planned)

    def save() -> None:
        place.save({**training.state(), "spec_digest": spec_digest})

    def after_step(training: Training) -> None:
        progress.step(training.made, str)
        if place.due():
            save()

    def after_epoch(training: Training) -> None:
        row = training.history[-1]
        write_csv(study.trial_folder(trial.number) / "history.csv", training.history)
        if row["epoch"] not in reported:
            trial.report(row["validation_top1"], row["epoch"])
        progress.line(f"trial {trial.number}  epoch {row['epoch']}  validation top-1 {row['validation_top1']:.2%}")
        if row["epoch"] >= last and trial.should_prune():
            raise optuna.TrialPruned

    with closing(Progress(f"trial {trial.number} {canonical_json(trial.params)}", training.planned)) as progress:
        try:
            training.run(after_step, after_epoch)
        except Interrupted:
            save()
            raise Interrupted(
                f"stopped by {signal.Signals(asked_to_leave()).name} at step {training.made} of {training.planned} of "
                f"trial {trial.number}: the state is kept in {place.file}, the same command continues from there"
            ) from None
    objective = specs.objective(study.spec)
    return specs.score(objective, training.history[-1][objective])


def conclude(spec: specs.Spec, folder: Path, best: Path, table: Path, made_by: Path) -> None:
    """Write best.json, the same whatever the order in which the workers came to it; trials.csv; and provenance."""
    origin = Origin(" ".join(["dpvision.search.study", *specs.modules_of(spec["run"])]))
    study = Study(spec, folder)
    finished = study.trials(*FINISHED)
    if not study.complete():
        raise UserError(
            f"{folder} has {len(finished)} of {study.count} trials: its journal was removed after its workers "
            f"were done; delete {folder / 'workers'} and let them work again"
        )
    for trial in finished:  # the worker of a trial may have been killed right after its end
        study.checkpoint(trial.number).remove()
    complete = [trial for trial in finished if trial.state == TrialState.COMPLETE]
    if not complete:
        raise UserError(
            f"every trial of {folder.name} was given up below prune_below = {spec['prune_below']}: "
            "lower it, or raise prune_after, in the search's configuration"
        )
    winner = min(complete, key=lambda trial: (-trial.values[0], canonical_json(trial.params)))
    objective, value = specs.objective(spec), winner.values[0]
    if value == -math.inf:
        raise UserError(
            f"no trial of {folder.name} ended with a finite validation loss: narrow the space of the search, or let "
            "prune_below give such trials up"
        )
    found = {"study": specs.study_name(spec), "values": winner.params, objective: specs.score(objective, value)}
    found |= {"trials": len(finished), "pruned": len(finished) - len(complete)}
    found["privacy"] = price(spec, [trial.params for trial in finished])
    if edges := space.edges(spec["space"], winner.params):
        found["edges"] = edges
        log.warning("%s: the best trial: %s; better values may lie beyond", folder.name, "; ".join(edges))
    write_json(best, found)
    write_csv(table, _rows(study, study.optuna.get_trials(deepcopy=False)))
    write_json(made_by, origin.provenance(spec))


def _rows(study: Study, trials: list[FrozenTrial]) -> list[dict[str, Any]]:
    """Return the lines of trials.csv: what a trial came to, its values, what it measured in its last epoch, what it spends.

    σ, steps and ε are those of all of its steps, which a ledger charges also where the trial was given up.
    """
    spec, rows = study.spec, []
    lasts = [_last_epoch(study.trial_folder(trial.number) / "history.csv") for trial in trials]
    measured = dict.fromkeys(key for last in lasts for key in last if MEASURED.match(key))
    for trial, epoch in zip(trials, lasts, strict=True):
        last = trial.last_step or 0
        row = {"trial": trial.number, "state": trial.state.name.lower(), "validation_top1": trial.intermediate_values.get(last)}
        row |= {"epochs": last, "seconds": round(trial.duration.total_seconds(), 1) if trial.duration else None}
        row |= {key: trial.params.get(key) for key in spec["space"]}
        row |= {key: epoch.get(key) for key in measured}
        row |= dict.fromkeys(("sampling_rate", "sigma", "steps", "epsilon"))
        if trial.params.keys() == spec["space"].keys():  # else its worker died while it drew them
            for spends in trial_mechanisms(spec, [trial.params]):
                epsilon = spends.epsilon(spec["run"]["budget"]["delta"])
                row |= {"sampling_rate": spends.q, "sigma": spends.sigma, "steps": spends.steps, "epsilon": epsilon}
        rows.append(row)
    return rows


def _last_epoch(history: Path) -> dict[str, str]:
    """Return the last line of a trial's history; studies of old kept none."""
    if not history.exists():
        return {}
    with open(history, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))[-1]
