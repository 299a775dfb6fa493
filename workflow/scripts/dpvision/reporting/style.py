"""The style of the report's pages."""

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
table { border-collapse: collapse; max-width: 100%; margin: 0.8rem 0; }
table { font-size: 0.85rem; line-height: 1.35; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid #e3e8ee; text-align: left; vertical-align: top; }
th, td { overflow-wrap: break-word; }
td:has(code), table.long th, table.long td { overflow-wrap: anywhere; }
table.long { font-size: 0.7rem; }
table.long th, table.long td { padding: 0.2rem 0.3rem; }
th { background: #f3f6fa; }
tbody tr:hover { background: #f8fafc; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: 0.3rem 1rem; margin: 0.6rem 0; }
dt { color: #5a6778; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
figure svg { width: 100%; height: auto; max-width: 60rem; }
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
