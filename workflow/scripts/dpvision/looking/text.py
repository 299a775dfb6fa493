"""Text for a terminal."""

from collections.abc import Sequence

LEFT, RIGHT = (1, 2, 4, 64), (8, 16, 32, 128)  # the bits of a braille character's dots, from top to bottom


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def counted(one: str, many: str, count: int) -> str:
    return f"{count} {one if count == 1 else many}"


def some(names: Sequence[str], most: int = 3) -> str:
    """Name the first few, and how many there are besides."""
    more = len(names) - most
    return ", ".join(names) if more <= 0 else ", ".join(names[:most]) + f" and {more} more"


def curve(line: Sequence[float], width: int = 60, height: int = 6) -> list[str]:
    """Draw a line in braille characters, straight between the values, with the highest and the lowest of them at its left."""
    low, high = min(line), max(line)
    cells = [[0] * width for _ in range(height)]
    for dot in range(2 * width):
        x = dot * (len(line) - 1) / (2 * width - 1)
        left = min(int(x), max(0, len(line) - 2))
        y = line[left] + (x - left) * (line[min(left + 1, len(line) - 1)] - line[left])
        down = round((high - y) / ((high - low) or 1) * (4 * height - 1))
        cells[down // 4][dot // 2] |= (RIGHT if dot % 2 else LEFT)[down % 4]
    labels = [f"{high:7.1%} ", *[" " * 8] * (height - 2), f"{low:7.1%} "]
    drawn = ("".join(chr(0x2800 + bits) for bits in row).rstrip("\u2800") for row in cells)
    return [(label + row).rstrip() for label, row in zip(labels, drawn, strict=True)]
