"""Differential privacy: accounting, the clipped gradient, noise, the ledger. Knows nothing of models or of training."""
