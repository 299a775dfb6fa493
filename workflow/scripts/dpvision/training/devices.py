"""One training on several devices of a machine: a process each, which share every step among them.

All draw the same sample and the same views; each clips its part of them. The sums are added up once a step, with the noise
that the first process put into its own; from there on all do the same, and their weights are the same to the last bit.

The first process is the job: it starts the others (peer.py), and it alone adds noise, decides, writes and logs. If one
process dies, all stop: the first waits for the end of each other one, and they for the end of the pipe from the first.
"""

import hashlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from dpvision import logs
from dpvision.errors import UserError
from dpvision.training.machine import device, settle

PACKAGES = Path(__file__).parents[2]
TIMEOUT = timedelta(minutes=10)  # of one process waiting for a living one; a death is noticed at once
PATIENCE = 10.0  # seconds between two notices of a death


class Devices:
    """One device: there is nobody to share with."""

    rank, count = 0, 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def device(self) -> torch.device:
        return device()

    def share(self, whole: Tensor) -> Tensor:
        """Return this process's part of a batch, a view; the parts of all, in the order of the processes, are the whole."""
        return whole

    def gather(self, part: Tensor, length: int) -> Tensor:
        """Return the whole that the parts of all processes make."""
        return part

    def add_up(self, tensors: list[Tensor]) -> None:
        """Put the sums over all processes in the tensors' place, the same bits for each process."""

    def largest(self, *numbers: int) -> Sequence[int]:
        """Return the largest value of each number over all processes."""
        return numbers

    def from_first(self, value: Any) -> Any:
        """Return the value that the first process has."""
        return value

    def compare(self, network: nn.Module) -> None:
        """Raise if not all processes have the same weights: noise and clipping would not be what the ledger says."""


ALONE = Devices()


class Several(Devices):
    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count

    def device(self) -> torch.device:
        return torch.device("cuda", self.rank) if torch.cuda.is_available() else torch.device("cpu")

    def share(self, whole: Tensor) -> Tensor:
        return whole.tensor_split(self.count)[self.rank]

    def gather(self, part: Tensor, length: int) -> Tensor:
        whole = part.new_zeros(length, dtype=torch.float64)
        self.share(whole).copy_(part)
        self.add_up([whole])
        return whole

    def add_up(self, tensors: list[Tensor]) -> None:
        together = parameters_to_vector(tensors)
        with _together():
            dist.all_reduce(together)
        vector_to_parameters(together, tensors)

    def largest(self, *numbers: int) -> Sequence[int]:
        found = torch.tensor(numbers, dtype=torch.int64)
        with _together():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.tolist()

    def from_first(self, value: Any) -> Any:
        box = [value]
        with _together():
            dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        return box[0]

    def compare(self, network: nn.Module) -> None:
        content = hashlib.sha256()
        for tensor in network.state_dict().values():
            content.update(tensor.cpu().contiguous().view(torch.uint8).numpy())
        found = int.from_bytes(content.digest()[:7])
        most, least = self.largest(found, -found)
        if most != -least:
            raise RuntimeError("the processes of this run no longer have the same weights: nothing of it can be used")


@contextmanager
def _together() -> Iterator[None]:
    """Wrap a wait for all others. A death shows here first; the thread that watches the dead process says so and ends us."""
    try:
        yield
    except RuntimeError:
        time.sleep(PATIENCE)
        raise


@contextmanager
def joined(rank: int, count: int, meeting: Path) -> Iterator[Several]:
    """Join the `count` processes that meet at a file, which no port of another job can be taken for."""
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(rank)
    with _together():
        dist.init_process_group(
            backend, store=dist.FileStore(str(meeting), count), rank=rank, world_size=count, timeout=TIMEOUT
        )
    yield Several(rank, count)
    dist.destroy_process_group()  # not after an error: there is nobody left to do it with


@contextmanager
def together(count: int, work: tuple[Any, ...]) -> Iterator[Devices]:
    """Yield the devices of a job; every other process does `work` (peer.py) beside what is done inside."""
    if count == 1:
        yield ALONE
        return
    visible = torch.cuda.device_count()
    if 0 < visible < count:
        raise UserError(f"the recipe asks for gpus: {count}, but this job sees {visible}: give it as many, or ask for fewer")
    settle(max(1, torch.get_num_threads() // count))
    with tempfile.TemporaryDirectory(prefix="dpvision-") as folder:
        meeting = Path(folder) / "meeting"
        peers = [Peer(rank, count, meeting, work) for rank in range(1, count)]
        try:
            with joined(0, count, meeting) as devices:
                yield devices
            for peer in peers:
                peer.watch.join()
        finally:
            for peer in peers:
                peer.end()


class Peer:
    """A process of the run other than the first, as the first one sees it."""

    def __init__(self, rank: int, count: int, meeting: Path, work: tuple[Any, ...]) -> None:
        self.name = f"process {rank} (of {count}, the first is 0)"
        self.wanted = True
        paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dpvision.training.peer"], stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
        )
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()
        assert self.process.stdin is not None
        pickle.dump((rank, count, meeting, torch.get_num_threads(), work), self.process.stdin)
        self.process.stdin.flush()  # and never closed: it ends with this process

    def _watch(self) -> None:
        code = self.process.wait()
        if code and self.wanted:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else "failed, as the log says"
            logs.leave(f"{self.name} of this run {how}; the same command continues from the last checkpoint")

    def end(self) -> None:
        self.wanted = False
        self.process.kill()
        self.process.wait()
