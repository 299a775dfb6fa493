"""Which examples a training holds in memory; light, since the plan counts memory by it."""

MOST = 2**32  # bytes of features of a split, as float32


def are_held(count: int, shape: list[int]) -> bool:
    """Tell whether so many examples of a shape are held: images, which are bytes, always; features if they are not too many."""
    return len(shape) != 1 or 4 * count * shape[0] <= MOST
