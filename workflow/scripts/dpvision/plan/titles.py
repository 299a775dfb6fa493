"""Titles of artifacts at a scale that has other data or networks than the paper."""

import re
from collections.abc import Mapping


def retitle(title: str, mentioned: Mapping[str, str], data: Mapping[str, str]) -> str:
    """Return the title of an artifact by what its scale has.

    Args:
        title: The title as the paper's configuration has it.
        mentioned: What networks, and data that others were trained on before, are called at this scale, by what those of the
            paper are called.
        data: The same of the data sets of the artifact.

    Returns:
        The title with the names of this scale, and with its data sets at the end if it mentions none of them and all of them
        are others than the paper's.
    """
    # the name of a part of what is printed needs no change: SmoothNet is one, narrow or not
    changed = {was: now for was, now in {**mentioned, **data}.items() if was not in now}
    if changed:
        names = "|".join(map(re.escape, sorted(changed, key=len, reverse=True)))
        title = re.sub(rf"(?<![\w-])(?:{names})(?![\w-])", lambda match: changed[match[0]], title)
    if data and all(was in changed for was in data) and not any(name in title for name in data.values()):
        title += f", on {' and '.join(dict.fromkeys(data.values()))}"
    return title
