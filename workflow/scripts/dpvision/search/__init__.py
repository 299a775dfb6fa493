"""Hyper-parameter search by Optuna: any number of workers share one journal."""
