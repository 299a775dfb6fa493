"""Debian's Chromium, headless and without a network, spoken to through its debugging pipe."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PACKAGE = "chromium"
NOWHERE = "127.0.0.1:9"  # the discard port: nobody listens
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
FLAGS += ["--no-first-run", f"--proxy-server={NOWHERE}", "--window-size=1280,800", "--remote-debugging-pipe"]


class Unavailable(Exception):
    """An error that says why there can be no browser here."""


def install() -> str:
    """Return the program; install it where it is missing. Only apt needs root, and only then."""
    if found := shutil.which(PACKAGE):
        return found
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    command = [*root, "apt-get", "install", "--yes", "--no-install-recommends", PACKAGE]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Unavailable(f"no {PACKAGE}, and {error}") from None
    if done.returncode:
        raise Unavailable(f"no {PACKAGE}, and apt-get says: {done.stderr.strip()[-200:]}")
    return PACKAGE


class Tab:
    """A page that is shown, and every address that it asked for."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back, self.rest, self.count = to, back, b"", 0
        self.session: str | None = None
        self.asked: list[str] = []
        self.loaded = False
        target = self.say("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.say("Page.enable")
        self.say("Network.enable")

    def say(self, method: str, **params: Any) -> Any:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self.count:
            self._note(answer)
        assert "result" in answer, answer
        return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 16)
            assert more, "the browser has gone"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, message: dict[str, Any]) -> None:
        if message["method"] == "Network.requestWillBeSent":
            self.asked.append(message["params"]["request"]["url"])
        self.loaded |= message["method"] == "Page.loadEventFired"

    def open(self, file: Path) -> None:
        self.loaded = False
        self.say("Page.navigate", url=file.resolve().as_uri())
        while not self.loaded:
            self._note(self._read())

    def run(self, script: str) -> Any:
        """Evaluate the script and return its value. Wait for the value where it is a promise."""
        said = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Give the page a window of its own size, without the browser's frame."""
        self.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.say("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium(program: str) -> Iterator[Tab]:
    """Start Chromium with a profile of its own and yield a tab. The profile is deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="dpvision-browser-"))
    (ours, to), (back, theirs) = os.pipe(), os.pipe()

    def connect() -> None:  # it reads from 3 and writes to 4
        read, write = os.dup(ours), os.dup(theirs)
        os.dup2(read, 3)
        os.dup2(write, 4)

    command = [program, *FLAGS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(command, preexec_fn=connect, close_fds=False, stderr=subprocess.DEVNULL)
    os.close(ours)
    os.close(theirs)
    try:
        yield Tab(to, back)
    finally:
        process.terminate()
        process.wait()
        for end in (to, back):
            with suppress(OSError):
                os.close(end)
        shutil.rmtree(folder, ignore_errors=True)
