"""Analyses of trained weights: each is an entry in the table of stages (plan/stages.py), options in config/analyses.py, and a
job, a function of its spec, the trained network with its data, and the folder that its record goes into."""
