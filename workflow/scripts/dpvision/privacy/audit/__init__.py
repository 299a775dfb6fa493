"""Estimators of what an attack proves: from counts to lower bounds of ε, and what a claim says of them. No network is here.

rates.py     two worlds: exact upper bounds of both rates, ε in both orders, μ
gaussian.py  Gaussian differential privacy: μ, ε and δ
one_run.py   one run with many canaries: ε (Steinke et al. 2023), μ (Mahloujifar et al. 2024)
claim.py     the claim: its whole curve, what its scores look like, which threshold to plan, what refutes it
"""
