"""Download of one archive over HTTP: resumed after a break, repeated after a passing fault, proved by its MD5."""

import http.client
import logging
import math
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from dpvision import logs
from dpvision.data import SourceFault
from dpvision.files import file_digest

log = logging.getLogger(__name__)

TIMEOUT = 20.0
PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}
SECONDS_BETWEEN_LINES = 5.0
MB = 1e6


def download(url: str, md5: str, part: Path, pauses: Sequence[float]) -> None:
    """Bring `part` to the whole archive. What is there already is kept, unless it turns out wrong: then fetch it once more."""
    for _ in range(2):
        _persist(url, part, pauses)
        found = file_digest(part, "md5")
        if found == md5:
            return
        part.unlink()
        log.warning("%s: expected MD5 %s, found %s; deleted", url, md5, found)
    raise SourceFault(f"the archive has the wrong MD5, also when fetched anew: expected {md5}, found {found}")


def _persist(url: str, part: Path, pauses: Sequence[float]) -> None:
    for pause in (*pauses, None):
        try:
            return _go_on(url, part)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if pause is None:
                raise SourceFault(f"{reason} (tried {len(pauses) + 1} times)") from error
            log.warning("%s: %s; trying again in %g s", url, reason, pause)
            time.sleep(pause)


def _go_on(url: str, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "dpvision"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:
                return  # nothing is left to send; whether what we have is right, the MD5 says
            if error.code in PASSING_STATUS:
                raise ConnectionError(f"HTTP {error.code} {error.reason}") from error
            raise SourceFault(f"HTTP {error.code} {error.reason}") from error
    with response:
        _write(response, part, have if response.status == 206 else 0)


def _write(response: http.client.HTTPResponse, part: Path, start: int) -> None:
    total = None if response.length is None else start + response.length
    if total is not None:
        _check_space(part.parent, total - start + total)
    progress = _Progress(part.stem, start, total)
    done = start
    with open(part, "ab" if start else "wb") as file:
        while chunk := response.read(1 << 18):
            file.write(chunk)
            done += len(chunk)
            progress.show(done)
    progress.end(done)
    if total is not None and done < total:  # http.client takes a connection that ends early for the end of the file
        raise ConnectionError(f"the connection ended after {done:,} of {total:,} bytes")


def _check_space(folder: Path, needed: int) -> None:
    """Check the space for the rest of the archive, and for the raw files made of it: about its size again."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SourceFault(f"about {needed / MB:.0f} MB are needed in {folder}, only {free / MB:.0f} MB are free")


class _Progress:
    """A log line every few seconds; on a terminal also one that is rewritten."""

    def __init__(self, name: str, start: int, total: int | None) -> None:
        self.name, self.start, self.total = name, start, total
        self.began = self.logged = time.monotonic()
        self.on_terminal = logs.Progress(name, math.ceil(total / MB)) if total else None
        log.info("%s: %s", name, f"going on at {start / MB:.1f} MB" if start else "downloading")

    def show(self, done: int) -> None:
        if time.monotonic() - self.logged >= SECONDS_BETWEEN_LINES:
            self.logged = time.monotonic()
            self._log(done)
        if self.on_terminal:
            self.on_terminal.step(int(done / MB), lambda: f"MB, {self._speed(done)}")

    def end(self, done: int) -> None:
        if self.on_terminal:
            self.on_terminal.close()
        self._log(done)

    def _log(self, done: int) -> None:
        whole = f" of {self.total / MB:.1f} MB, {100 * done // self.total} %" if self.total else " MB"
        log.info("%s: %.1f%s, %s", self.name, done / MB, whole, self._speed(done))

    def _speed(self, done: int) -> str:
        return f"{(done - self.start) / MB / max(time.monotonic() - self.began, 1e-9):.1f} MB/s"
