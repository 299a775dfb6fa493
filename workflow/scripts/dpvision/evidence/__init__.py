"""Kept results in the forms that others ask for: one page, a leaderboard's entry, an artifact's appendix, a checklist.

Everything here is read from folders that `python -m dpvision keep` wrote, and from the plans of their scales.
"""
