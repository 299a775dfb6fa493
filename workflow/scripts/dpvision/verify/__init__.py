"""The check that results hold together: every digest, every number of every table from the records, every ε from its ledger.

Needs no torch and nothing of Snakemake's. A check yields what does not hold; what could not be looked at is said as well.
"""
