"""An audit of the engine: attacks on the very step that trains, all of them in the data, and what they prove of the claim.

subject.py   the run that is audited: its Training on made-up data, its ledger's claim
canaries.py  a linear network whose canaries have orthogonal gradients; designs that repeat steps and runs
replay.py    a neighbour replayed through networks, with next to no noise
judge.py     tests, and a verdict of three
job.py       all designs, one record
"""
