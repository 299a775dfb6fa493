"""A job changes the process that it runs in: how it keeps memory, and its threads."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from dpvision.training.machine import settle
{settle}
def step():
    torch.ones(12_000_000)
for _ in range(20):  # until everything small has found its place
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, torch.get_num_threads())
"""


def faults(settle: str) -> tuple[int, int]:
    found = subprocess.run([sys.executable, "-c", PROGRAM.format(settle=settle)], capture_output=True, text=True, check=True)
    pages, threads = map(int, found.stdout.split())
    return pages, threads


@pytest.mark.skipif(sys.platform != "linux", reason="memory that stays is a matter of glibc")
def test_a_settled_process_keeps_the_memory_of_a_step_for_the_next_and_has_the_threads_it_was_told():
    settled, threads = faults("settle(3)")
    assert threads == 3
    assert settled < 100
    assert faults("")[0] > 1000
