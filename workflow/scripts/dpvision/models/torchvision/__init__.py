"""torchvision's networks with group normalisation: those that Remerscheid et al. 2022 compare SmoothNet with."""
