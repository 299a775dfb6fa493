"""Pages that stand alone: HTML with its style and drawings inside, nothing fetched, everything escaped."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from html import escape

from dpvision.reporting.style import CSS

WIDTH, HEIGHT, MARGIN = 760, 230, 48  # of a curve's drawing, in its own units
COLOURS = ("#1f4e8c", "#e07b00")
LINES = ("", "6 4")
BOX_LETTERS = 17  # of a line that fits a box of a graph


def page(title: str, banner: str, *parts: str) -> str:
    """Return a whole page; `banner` is text, the parts are HTML."""
    note = f'<p class="banner">{escape(banner)}</p>' if banner else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{CSS}</style></head>\n"
        f"<body><main>{note}\n<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table of text in a box that scrolls where the page is too narrow; `long`: of many columns, in small letters."""
    top = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{inline(_keep_together(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _keep_together(cell: str) -> str:
    """Return a cell whose number is never broken from its spread and its n."""
    return re.sub(r"(?<=\d) (?=[±(])|(?<=±) (?=\d)", "\N{NO-BREAK SPACE}", cell)


def facts(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows) + "</dl>"


def items(texts: Iterable[str], kind: str = "") -> str:
    return f'<ul class="{kind}">' + "".join(f"<li>{inline(text)}</li>" for text in texts) + "</ul>"


def folded(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def inline(text: str) -> str:
    """Return text with the marks that our Markdown has in a line: **bold**, *emphasis*, `code`, [words](#place)."""
    text = escape(text.replace("&lt;", "<").replace("&#124;", "|"))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"(?<![\w*])\*([^*]+)\*(?![\w*])", r"<em>\1</em>", text)
    return re.sub(r"\[(.+)\]\(#(\w+)\)", r'<a href="#\2">\1</a>', text)


def markdown(text: str, pictures: dict[str, str]) -> str:
    """Return the Markdown that this pipeline writes as HTML; `pictures`: a file's name -> the SVG that stands for it."""
    return "\n".join(_block(block.strip("\n"), pictures) for block in re.split(r"\n{2,}", text) if block.strip())


def _block(block: str, pictures: dict[str, str]) -> str:
    if place := re.fullmatch(r'<a id="(\w+)"></a>', block):
        return f'<span id="{place[1]}"></span>'
    if picture := re.fullmatch(r"!\[(.*)\]\((\S+)\)", block):
        return figure(pictures[picture[2]], picture[1])
    if heading := re.fullmatch(r"(#+) (.*)", block):
        level = len(heading[1])
        return f"<h{level}>{inline(heading[2])}</h{level}>"
    if block.startswith("> "):
        return f"<blockquote>{inline(block.removeprefix('> '))}</blockquote>"
    if block.startswith("- "):
        return items(re.sub(r"\n +", " ", entry) for entry in block.removeprefix("- ").split("\n- "))
    if block.startswith("| "):
        head, _, *rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in block.splitlines()]
        return table(head, rows)
    return f"<p>{inline(block)}</p>"


def figure(svg: str, description: str) -> str:
    """Return a figure of an SVG file's text, without what stands before its drawing."""
    return f'<figure role="img" aria-label="{escape(description)}">{svg[svg.index("<svg") :]}</figure>'


def curves(lines: dict[str, list[tuple[float, float]]], across: str) -> str:
    """Draw shares by something, as lines in one drawing; the axis up is in per cent."""
    points = [point for line in lines.values() for point in line]
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)

    def at(x: float, y: float) -> str:
        right = MARGIN + (x - first) / ((last - first) or 1) * (WIDTH - 2 * MARGIN)
        down = HEIGHT - MARGIN - (y - low) / ((high - low) or 1) * (HEIGHT - 2 * MARGIN)
        return f"{right:.1f},{down:.1f}"

    drawn = [f'<path class="axis" d="M{MARGIN},{MARGIN} V{HEIGHT - MARGIN} H{WIDTH - MARGIN}"/>']
    for y, down in ((high, MARGIN), (low, HEIGHT - MARGIN)):
        drawn.append(f'<text x="{MARGIN - 6}" y="{down + 4}" text-anchor="end">{y:.0%}</text>')
    for x, right in ((first, MARGIN), (last, WIDTH - MARGIN)):
        drawn.append(f'<text x="{right}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{x:g}</text>')
    drawn.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{escape(across)}</text>')
    for i, (name, line) in enumerate(lines.items()):
        path = " L".join(at(*point) for point in line)
        drawn.append(f'<path class="line" d="M{path}" stroke="{COLOURS[i]}" stroke-dasharray="{LINES[i]}"/>')
        left = MARGIN + 10 + 200 * i
        drawn.append(
            f'<path class="line" d="M{left},20 h28" stroke="{COLOURS[i]}" stroke-dasharray="{LINES[i]}"/>'
            f'<text x="{left + 36}" y="24">{escape(name)}</text>'
        )
    return figure(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(drawn)}</svg>', f"{', '.join(lines)} by {across}")


def graph(columns: list[list[tuple[str, str]]], arrows: list[tuple[str, str]]) -> str:
    """Draw boxes in columns from left to right, each a name and what is said below it; arrows lead to later columns."""
    wide, gap = 128, 28
    texts = {name: textwrap.wrap(about, BOX_LETTERS) for column in columns for name, about in column}
    tall = 30 + 16 * max(map(len, texts.values()), default=1)
    height = max(map(len, columns)) * (tall + 18) + 20
    places = {}
    drawn = ['<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">']
    drawn.append('<path d="M0,0 L8,4 L0,8 z"/></marker>')
    for i, column in enumerate(columns):
        for j, (name, _) in enumerate(column):
            places[name] = (10 + i * (wide + gap), (height - len(column) * (tall + 18)) / 2 + j * (tall + 18) + 9)
    for begin, end in arrows:
        (x, y), (to, down) = places[begin], places[end]
        x, y, down = x + wide, y + tall / 2, down + tall / 2
        bend = (to - x) / 2
        drawn.append(f'<path class="arrow" d="M{x},{y:g} C{x + bend},{y:g} {to - bend},{down:g} {to},{down:g}"/>')
    for name, lines in texts.items():
        x, y = places[name]
        drawn.append(f'<rect x="{x}" y="{y:g}" width="{wide}" height="{tall}" rx="6"/>')
        drawn.append(f'<text x="{x + wide / 2}" y="{y + 19:g}" text-anchor="middle" class="name">{escape(name)}</text>')
        for i, line in enumerate(lines):
            drawn.append(f'<text x="{x + wide / 2}" y="{y + 36 + 16 * i:g}" text-anchor="middle">{escape(line)}</text>')
    width = len(columns) * (wide + gap) - gap + 20
    steps = "; ".join(f"{begin} to {end}" for begin, end in arrows)
    return figure(f'<svg class="graph" viewBox="0 0 {width} {height}">{"".join(drawn)}</svg>', f"What leads to what: {steps}")
