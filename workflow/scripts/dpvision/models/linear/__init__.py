"""A linear layer alone: the head on features that were computed once."""
