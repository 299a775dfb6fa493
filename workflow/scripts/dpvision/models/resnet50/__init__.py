"""ResNet-50 with group normalisation, and ScaleResNet-50, of Klause et al. 2022."""
