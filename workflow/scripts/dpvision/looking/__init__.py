"""Views of what is there, what is under way and what it would take: read from records and the plan, nothing heavy imported."""
