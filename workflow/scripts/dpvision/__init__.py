"""Differentially private image classification, reproduced: the library behind the pipeline."""
