"""ResNet-9 and ScaleResNet-9 of Klause et al. 2022."""
