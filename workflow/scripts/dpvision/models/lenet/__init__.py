"""A small convolutional network for handwritten digits, after LeNet (LeCun et al. 1998)."""
