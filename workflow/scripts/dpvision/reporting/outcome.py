"""What came out, paper by paper: the effect in a sentence, the paper's first table, and what is missing."""

import csv
from pathlib import Path

from dpvision.plan import Plan
from dpvision.plan.plan import folder_of
from dpvision.reporting import html
from dpvision.reporting.claims import tally

Row = dict[str, str]
"""A row of claims.csv."""

# A link of Snakemake's report that shows a page beside the menu that is open.
SHOW = "javascript:app.setView((path=>({{content:'{kind}',contentPath:results[path].data_uri,resultPath:path}}))\
(Object.keys(results).find(path=>path.endsWith('/{file}'))))"
SUFFIXES = {"html": "html", "svg": "img"}


def home(plan: Plan, root: Path, graph: str) -> str:
    """Return the HTML of the report's first page, which Snakemake puts into its own.

    Args:
        plan: What is planned.
        root: The folder that the results lie below.
        graph: The drawing of which stage leads to which.
    """
    pages = {"overview": "report/overview.html"}
    pages |= {name: f"report/tables/{name}.html" for name in plan.of_kind("tables")}
    pages |= {name: f"figures/{name}.svg" for name in plan.of_kind("figures")}
    pages |= {name: f"report/{name}.html" for name in plan.of_kind("")}
    links = " · ".join(link(file, name) for name, file in pages.items())
    parts = [outcome(plan, root), f"<h2>Open a page</h2><p>{links}</p>", "<h2>What leads to what</h2>", graph]
    return f'<div class="outcome not-prose">{"".join(parts)}</div>\n'


def link(file: str, words: str) -> str:
    """Return a link to a page or figure in Snakemake's report, by the end of its path."""
    show = SHOW.format(kind=SUFFIXES[file.rpartition(".")[2]], file=file)
    return f'<a href="{html.escape(show)}">{html.escape(words)}</a>'


def outcome(plan: Plan, root: Path) -> str:
    """Return the HTML of what came out of each paper.

    Args:
        plan: What is planned.
        root: The folder that the results lie below.
    """
    return "\n".join([*(_of_paper(plan, root, paper) for paper in plan.papers if plan.papers[paper]), _not_built(plan)])


def _of_paper(plan: Plan, root: Path, paper: str) -> str:
    names = [name for name in plan.papers[paper] if name in plan.artifacts]
    by_folder: dict[str, list[str]] = {}
    for name in names:
        by_folder.setdefault(folder_of(plan.artifacts[name]), []).append(name)
    parts = [f"<h2>{html.escape(plan.labels[name]['paper'])}</h2>" for name in names[:1]]
    claims = [row for name in by_folder.get("", []) for row in _rows(root / plan.results / f"{name}.csv")]
    datasets = {key: label for name in names for key, label in plan.labels[name].get("datasets", {}).items()}
    if sentence := effect_sentence(claims, datasets):
        parts.append(f'<p class="lead">{html.inline(sentence)}</p>')
    # A table of what other works print is not what came out.
    if tables := [name for name in by_folder.get("tables", []) if plan.work_of(name)]:
        text = (root / plan.results / "tables" / f"{tables[0]}.md").read_text(encoding="utf-8")
        blocks = [block for block in text.split("\n\n") if not block.startswith("- ")]
        parts.append(html.markdown("\n\n".join(blocks), {}))
    elif figures := by_folder.get("figures"):
        svg = (root / plan.results / "figures" / f"{figures[0]}.svg").read_text(encoding="utf-8")
        parts.append(html.figure(svg, plan.labels[figures[0]]["title"]))
    return "\n".join([*parts, f"<p>{html.escape(judged_claims(claims))}</p>"])


def _rows(file: Path) -> list[Row]:
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def effect_sentence(rows: list[Row], datasets: dict[str, str]) -> str:
    """Say in a sentence how large the first difference of accuracies is that claims.csv has; empty if none was measured.

    Args:
        rows: The rows of claims.csv.
        datasets: What people call data sets, by name.
    """
    measured = [row for row in rows if row["row"] == "comparison" and row["kind"] == "difference" and row["of_medians"]]
    if not measured:
        return ""
    first = measured[0]
    alike = [row for row in measured if (row["claim"], row["dataset"]) == (first["claim"], first["dataset"])]
    what = first["comparison"].partition(": ")[0]
    alike = [row for row in alike if row["comparison"].partition(": ")[0] == what]
    points = ", ".join(f"{float(row['of_medians']):+.1f}".replace("-", "\N{MINUS SIGN}") for row in alike)
    levels = [f"{float(row['epsilon']):g}" if row["epsilon"] else "not private" for row in alike]
    counts = " or ".join(dict.fromkeys(row["n"] for row in alike))
    data = datasets.get(first["dataset"], first["dataset"])
    verdicts = " and ".join(dict.fromkeys(row["verdict"] for row in alike))
    return (
        f"{what[:1].upper()}{what[1:]}: **{points} points** at ε = {', '.join(levels)}, on {data} "
        f"(difference of the medians, n = {counts}); **{verdicts}**. The paper says: *{first['text']}*"
    )


def judged_claims(rows: list[Row]) -> str:
    """Say how many claims have which verdict, by the rows of claims.csv."""
    verdicts = [row["verdict"] for row in rows if row["row"] == "claim"]
    if not verdicts:
        return "The page of its claims was not built."
    return f"Of its {len(verdicts)} claims: {tally(verdicts)}."


def _not_built(plan: Plan) -> str:
    """Return the HTML of which artifacts are missing, empty if none is."""
    lines = plan.left_out_for_data()
    if not plan.left_out and not lines:
        return ""
    reason = "the selection leaves them out, or this scale has no part of them" if plan.selection else "not at this scale"
    count = len(plan.left_out)
    names = html.folded(f"{count} tables, figures and pages of claims: {reason}", f"<p>{', '.join(plan.left_out)}</p>")
    return "<h2>What is missing</h2>" + html.items(lines) * bool(lines) + names * bool(count)
