"""Training: the step, the loop around it, checkpoints, and the record a run leaves."""
