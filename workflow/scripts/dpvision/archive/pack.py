"""The archive as a file: the same bytes for the same results and source, whenever and wherever it is made."""

import logging
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from dpvision.archive.contents import MANIFEST, Contents, about, contents, sha256
from dpvision.archive.crate import description, metadata
from dpvision.archive.readme import readme
from dpvision.errors import UserError
from dpvision.files import replacing
from dpvision.plan import Plan
from dpvision.plan.withheld import refuse_own_pictures
from dpvision.source import ROOT, source

log = logging.getLogger(__name__)


def write_archive(plan: Plan, out: Path, root: Path, project: Path = ROOT) -> None:
    refuse_own_pictures(plan, "an archive")
    found = source(project)
    if found is None:
        raise UserError(
            f"{project} is neither a git checkout nor an archive's source, so nothing says which files are the source's. "
            "Clone the project, or: git init && git add --all && git commit"
        )
    inside = contents(plan, root, project, found)
    said = about(plan, found)
    inside["README.md"] = readme(plan, root, said)
    inside["ro-crate-metadata.json"] = metadata(plan, root, inside, said)
    inside[MANIFEST] = "".join(f"{sha256(inside[name])}  {name}\n" for name in sorted(inside)).encode()
    with replacing(out) as beside:
        _pack(inside, datetime.fromisoformat(found.date), beside)
    log.info("%s: %d files, %.1f MB. %s", out, len(inside), out.stat().st_size / 1e6, description(plan, said))


def _pack(inside: Contents, date: datetime, out: Path) -> None:
    """Store files without compression: what compressors write depends on their version, and weights do not get smaller."""
    when = date.astimezone(UTC).timetuple()[:6]
    with ZipFile(out, "w", ZIP_STORED) as archive:
        for name, content in sorted(inside.items()):
            runs = isinstance(content, Path) and os.access(content, os.X_OK)
            info = ZipInfo(name, (max(1980, when[0]), *when[1:]))
            info.create_system, info.external_attr = 3, (0o100755 if runs else 0o100644) << 16
            if isinstance(content, bytes):
                archive.writestr(info, content)
                continue
            info.file_size = content.stat().st_size
            with open(content, "rb") as file, archive.open(info, "w") as copy:
                shutil.copyfileobj(file, copy, 1 << 20)
