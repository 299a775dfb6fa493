"""The style of the report's pages, and what it changes in Snakemake's own page around them."""

CSS = """\
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1c2430; font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 80rem; margin: 0 auto; padding: 1.5rem 2rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.9rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; padding-bottom: 0.2rem; border-bottom: 1px solid #d9dfe7; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 0.5rem; }
p, li, blockquote, dd { max-width: 46rem; overflow-wrap: break-word; }
a { color: #1f4e8c; }
blockquote { margin: 0.6rem 0; padding: 0.2rem 1rem; border-left: 3px solid #9fb4cf; color: #33445c; font-style: italic; }
code { font: 0.9em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.banner { max-width: none; margin: 0; padding: 0.6rem 1rem; border-radius: 6px; background: #ffe9b8; }
.warning li { background: #fdeaea; border-left: 4px solid #b3261e; margin: 0.35rem 0; padding: 0.35rem 0.8rem; }
.warning { list-style: none; padding: 0; }
.fine { color: #2a6a37; }
.lead { max-width: none; margin: 0.4rem 0; font-size: 1.1rem; }
.wrong { max-width: none; margin: 0.4rem 0; padding: 0.35rem 0.8rem; background: #fdeaea; border-left: 4px solid #b3261e; }
.wrong { overflow-wrap: anywhere; }
.limit { max-width: none; margin: 0.4rem 0; padding: 0.35rem 0.8rem; background: #fff6e0; border-left: 4px solid #b58100; }
.wide { overflow-x: auto; margin: 0.8rem 0; }
table { border-collapse: collapse; }
table { font-size: 0.85rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid #e3e8ee; text-align: left; vertical-align: top; }
th, td { overflow-wrap: break-word; }
td:has(code) { overflow-wrap: anywhere; }
table.long { font-size: 0.7rem; }
table.long th, table.long td { padding: 0.2rem 0.3rem; }
th { background: #f3f6fa; }
tbody tr:hover { background: #f8fafc; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: 0.3rem 1rem; margin: 0.6rem 0; }
dt { color: #5a6778; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { width: 100%; height: auto; min-width: 42rem; max-width: 60rem; }
@media (max-width: 50rem) { main { padding: 1rem 1rem 3rem; } }
svg .axis, svg .arrow { fill: none; stroke: #7b8797; }
svg .arrow { marker-end: url(#tip); }
svg marker path { fill: #7b8797; }
svg .line { fill: none; stroke-width: 2; }
svg rect { fill: #eef3fa; stroke: #9fb4cf; }
svg.graph text, figure > svg > text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #33445c; }
svg.graph text.name { font-weight: 600; fill: #1c2430; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
pre { padding: 0.6rem 1rem; background: #f6f8fb; font-size: 0.85rem; line-height: 1.4; }
summary { cursor: pointer; color: #1f4e8c; margin: 0.8rem 0; }
@media print {
  main { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; }
}
"""

# The classes are Snakemake's. It shows a rule once for each level of the graph of jobs; the first page has our own graph, with
# each stage once. Its menu would be as wide as the longest title.
REPORT_CSS = """\
nav.min-w-fit { min-width: 15rem !important; max-width: 21rem; flex-shrink: 0; }
nav a, nav th, nav td { color: #fff; }
nav th, nav td { white-space: normal !important; overflow-wrap: anywhere; vertical-align: top; }
div.grow { min-width: 0; }
div.grow.h-screen { align-items: safe center; }
nav td:first-child { min-width: 7.5rem; }
#rulegraph { display: none; }
.prose { max-width: 60rem !important; }
.outcome { color: #1c2430; line-height: 1.5; }
.outcome h2 { font-size: 1.2rem; font-weight: 600; margin: 1.4rem 0 0.4rem; border-bottom: 1px solid #d9dfe7; }
.outcome p { margin: 0.5rem 0; }
.outcome .lead { font-size: 1rem; }
.outcome a { color: #1f4e8c; text-decoration: underline; }
.outcome .wide, .outcome figure { overflow-x: auto; }
.outcome table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.outcome th, .outcome td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #e3e8ee; text-align: left; }
.outcome th { background: #f3f6fa; }
.outcome figure svg { width: 100%; height: auto; min-width: 36rem; max-width: 60rem; }
.outcome svg .arrow { fill: none; stroke: #7b8797; marker-end: url(#tip); }
.outcome svg marker path { fill: #7b8797; }
.outcome svg.graph rect { fill: #eef3fa; stroke: #9fb4cf; }
.outcome svg.graph text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #33445c; }
.outcome svg.graph text.name { font-weight: 600; fill: #1c2430; }
"""
