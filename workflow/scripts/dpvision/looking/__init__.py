"""What is there, what is under way, what it would take: read from records and the plan alone, nothing heavy imported."""
