"""NF-ResNets: residual networks without normalisation, which De et al. 2022 train on ImageNet."""
