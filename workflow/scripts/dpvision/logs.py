"""A job's log: all its output goes there; a progress line and the last message go to the terminal too."""

import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TextIO

from dpvision.disk import full_disk_message, is_full_disk
from dpvision.errors import Interrupted, UserError
from dpvision.locks import show_in_use

FAILED, LEFT = "failed: ", "left: "  # how the last words in a log begin

_terminal: TextIO = sys.stderr  # the job's own stderr, also after it has been sent to the log


@contextmanager
def job(log: str) -> Iterator[None]:
    """Send everything that is printed, warned or logged inside to the file `log`.

    An error's traceback goes there as well; a UserError is a message and has none. The terminal gets
    one line that names the log. The log shows others whether its job runs, and how it ended.
    """
    global _terminal
    _terminal = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w+", buffering=1, encoding="utf-8") as file:
        show_in_use(file)
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        # a terminal's encoding is not the log's
        sys.stdout = sys.stderr = file
        logging.basicConfig(stream=file, level=logging.INFO, format="%(asctime)s  %(message)s", datefmt="%H:%M:%S", force=True)
        logging.captureWarnings(True)
        try:
            yield
        except UserError as error:
            _terminal.write(f"{error}\n")
            with suppress(OSError):  # the disk may be full, and that the error
                file.write(f"{LEFT if isinstance(error, Interrupted) else FAILED}{error}\n")
            raise SystemExit(1) from None
        except Exception as error:
            if is_full_disk(error):
                leave(full_disk_message(Path(log).parent))
            _terminal.write(f"{type(error).__name__}: {error} (traceback: {log})\n")
            with suppress(OSError):
                traceback.print_exc(file=file)
                file.write(f"{FAILED}{type(error).__name__}: {error}\n")
            raise SystemExit(1) from None


def leave(text: str) -> NoReturn:
    """End the process at once, from any thread, whatever the others do; `text` says why, as an error does."""
    for file, words in {sys.stderr: FAILED + text, _terminal: text}.items():
        with suppress(OSError):
            file.write(f"{words}\n")
            file.flush()
    os._exit(1)


def tell(text: str) -> None:
    """Write to the log and to the terminal that the job is not getting on, and why."""
    logging.getLogger(__name__).info(text)
    _terminal.write(f"{text}\n")


def last_words(log: Path) -> str:
    """Return what the job of this log failed of; empty where it did not fail, was told to leave, or was killed."""
    with open(log, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 10_000))
        end = file.read().decode("utf-8", "replace")
    said = re.split(f"^({FAILED}|{LEFT})", end, flags=re.MULTILINE)
    return said[-1].strip() if len(said) > 1 and said[-2] == FAILED else ""


class Progress:
    """A progress line on a terminal, written over; nothing where there is no terminal. `line` writes to the log."""

    EVERY = 1.0  # seconds; several jobs may share the terminal

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total = title, total
        self.begun = time.monotonic()
        self.first: int | None = None
        self.shown = 0.0
        self.on = _terminal.isatty()

    def step(self, done: int, text: Callable[[], str]) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = done - 1
        if not self.on or (now - self.shown < self.EVERY and done < self.total):
            return
        self.shown = now
        line = f"{self.title}  {done}/{self.total}  {text()}  {clock(self.seconds_left(done) or 0)} to go"
        columns = os.get_terminal_size(_terminal.fileno()).columns or 80  # a longer line would leave its first part behind
        _terminal.write(f"\r\x1b[K{line[: columns - 1]}")
        _terminal.flush()

    def seconds_left(self, done: int) -> float | None:
        """Estimate the seconds left by the pace since it began here; None before the first step."""
        if self.first is None:
            return None
        return (time.monotonic() - self.begun) / (done - self.first) * (self.total - done)

    def line(self, text: str) -> None:
        logging.getLogger(__name__).info(text)

    def close(self) -> None:
        if self.on:
            _terminal.write("\r\x1b[K")
            _terminal.flush()


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
