"""Names of a person, a machine or a place on it, taken out of logs."""

import getpass
import os
import platform
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from dpvision.errors import UserError
from dpvision.source import ROOT

PATH = re.compile(r"""(?<![\w.~:/<-])/(?:[^\s/:'",;()<>|]+/)*([^\s/:'",;()<>|]+)/?""")
OWNER = re.compile(r"(process \d+ on )[^\s,]+(, SLURM job \d+)?")  # as training/owner.py names one


class Names(NamedTuple):
    """The names of this user and of this machine."""

    places: dict[str, str]
    """Folders, and what stands for each."""
    words: dict[str, str]
    """Names of people and machines, and what stands for each."""

    def cleaned(self, text: str) -> str:
        """Return the text without any of the names, and without other absolute paths, of which the file's name is left."""
        for place, stand_in in self.places.items():
            text = text.replace(place, stand_in)
        text = OWNER.sub(r"\1HOST", text)
        for word, stand_in in self.words.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", stand_in, text)
        return PATH.sub(lambda path: f"…/{path[1]}" if "." in path[1] else "…", text)

    def refuse(self, file: str, content: bytes) -> None:
        """Raise if a file that is not rewritten, since digests prove it, has a folder of the user's in it."""
        for place in self.places:
            if Path(place).parent != Path("/") and place.encode() in content:
                line = content[: content.index(place.encode())].count(b"\n") + 1
                raise UserError(
                    f"{file}, line {line}, names {place}: an archive is for others and names no place on your machine. Take it "
                    "out there (folders of data sets can stand on the command line: --config 'folders={...}')"
                )


def here() -> Names:
    home, temporary = str(Path.home()), tempfile.gettempdir()
    places = {str(ROOT): ".", str(ROOT.resolve()): ".", sys.prefix: "PYTHON", home: "~", temporary: "TMP"}
    host = platform.node()
    people = {getpass.getuser(), Path.home().name, os.environ.get("USER", "")} - {"", "root"}
    words = dict.fromkeys(sorted(people), "USER") | ({host: "HOST", host.split(".")[0]: "HOST"} if host else {})
    return Names({place: stand_in for place, stand_in in places.items() if place != "/"}, words)
