"""Leaving in the middle of something long: it is given up, and the state is what it was before."""

from collections.abc import Callable

Told = Callable[[], bool]


def stay() -> bool:
    """Nobody told us to leave."""
    return False


class Left(Exception):
    """Told to leave, half a step or half an evaluation was given up."""
