"""SmoothNet of Remerscheid et al. 2022, and the networks of the study of components that it came from."""
