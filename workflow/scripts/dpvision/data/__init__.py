"""Data: where it comes from, what proves it, the arrays made of it, and how examples are drawn."""


class SourceFault(Exception):
    """A source that did not give a raw file, and why. Collected; the person sees it only if no source did."""
