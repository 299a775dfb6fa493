"""Wide residual networks as De et al. 2022 train them, and with ScaleNorm."""
