"""Tables as text: panels as Markdown and as LaTeX, and how a number is written."""

import re

import pandas as pd

from dpvision.reporting.layout import Panel


def number(value: float | None, decimals: int | None = None, sign: str = "") -> str:
    """Write a number with so many decimals, or four digits that count; a dash for nothing."""
    if value is None or pd.isna(value):
        return "–"
    if decimals is not None:
        return f"{value:{sign}.{decimals}f}"
    whole = 1000 <= abs(value) < 1e9
    return f"{value:{sign}.0f}" if whole else f"{value:{sign}.4g}"


def markdown(panels: list[Panel], caption: str, notes: list[str]) -> str:
    parts = [f"**{escape_markdown(caption)}**"]
    for panel in panels:
        columns = [*panel.names, *panel.columns]
        parts += [f"**{escape_markdown(panel.heading)}**"] * bool(panel.heading)
        parts.append("\n".join(map(markdown_row, [columns, ["---"] * len(columns), *panel.rows])))
    return "\n\n".join([*parts, "\n".join(f"- {escape_markdown(note)}" for note in notes)]) + "\n"


def markdown_row(cells: list[str]) -> str:
    """Return a row of a Markdown table; a pipe in a cell ends none."""
    return "| " + " | ".join(escape_markdown(cell).replace("|", "&#124;") for cell in cells) + " |"


def escape_markdown(text: str) -> str:
    """Escape what begins a tag of HTML, and take out ends of lines; what stands between backticks is code, and stays."""
    parts = " ".join(text.splitlines()).split("`")
    # a last backtick without its second begins no code
    is_closed = len(parts) % 2 == 1
    for i in range(len(parts)):
        if i % 2 == 0 or (i == len(parts) - 1 and not is_closed):
            parts[i] = re.sub("<(?=[A-Za-z/!?])", "&lt;", parts[i])
    return "`".join(parts)


ROWS = 40  # on a page for print


def latex(panels: list[Panel], caption: str, notes: list[str], name: str) -> str:
    """Write booktabs tables, panels one below the other; what is wider than a page is made as wide, what is longer is cut."""
    first, *others = _pages(panels)
    noted = [r"{\footnotesize\raggedright", *map(tex, notes), r"\par}"]
    lines = [r"% needs \usepackage{booktabs,graphicx}", r"\begin{table}", r"\centering"]
    lines += [rf"\caption{{{tex(caption)}}}", rf"\label{{tab:{name}}}", *_tabulars(first)]
    for page in others:
        lines += [r"\end{table}", r"\begin{table}", r"\centering", r"\emph{Continued}\par\smallskip", *_tabulars(page)]
    lines += [r"\end{table}", *noted] if others else [*noted, r"\end{table}"]  # notes of a long table are long
    return "\n".join(lines) + "\n"


def _pages(panels: list[Panel]) -> list[list[Panel]]:
    """Cut panels that are longer than a page, and put on each page as many as there is room for."""
    cut = [p._replace(rows=p.rows[at : at + ROWS]) for p in panels for at in range(0, len(p.rows), ROWS)]
    pages: list[list[Panel]] = [[]]
    for panel in cut:
        if pages[-1] and sum(len(there.rows) for there in pages[-1]) + len(panel.rows) > ROWS:
            pages.append([])
        pages[-1].append(panel)
    return pages


def _tabulars(panels: list[Panel]) -> list[str]:
    lines = []
    for panel in panels:
        count = len(panel.names) + len(panel.columns)
        lines.append(r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%")
        lines += [rf"\begin{{tabular}}{{{'l' * len(panel.names)}{'c' * len(panel.columns)}}}", r"\toprule"]
        if panel.heading:
            lines.append(rf"\multicolumn{{{count}}}{{l}}{{\textbf{{{tex(panel.heading)}}}}} \\")
        lines += [_tex_row([*panel.names, *panel.columns]), r"\midrule", *map(_tex_row, panel.rows)]
        lines += [r"\bottomrule", r"\end{tabular}}", r"\par\medskip"]
    return lines


def _tex_row(cells: list[str]) -> str:
    return " & ".join(map(tex, cells)) + r" \\"


ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in "_%&#${}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "ε": r"$\varepsilon$",
        "δ": r"$\delta$",
        "σ": r"$\sigma$",
        "±": r"$\pm$",
        "−": "$-$",
        "×": r"$\times$",
        "≤": r"$\le$",
        "≥": r"$\ge$",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "–": "--",
    }
)


def tex(text: str) -> str:
    """Escape what LaTeX would take for its own; what stands between backticks is code."""
    parts = [part.translate(ESCAPED) for part in text.split("`")]
    return "".join(rf"\texttt{{{part}}}" if i % 2 else part for i, part in enumerate(parts))
