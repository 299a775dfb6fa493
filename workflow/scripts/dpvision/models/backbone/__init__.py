"""torchvision's networks as they are, to begin with public weights."""
