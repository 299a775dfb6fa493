"""torchvision's and timm's networks as they are, to begin with public weights."""
