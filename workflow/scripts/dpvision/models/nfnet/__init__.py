"""NFNets: larger networks without normalisation, whose features De et al. 2022 classify."""
