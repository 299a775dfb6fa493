"""Exceptions whose text is meant for the person at the keyboard."""


class UserError(Exception):
    """An error that the user can put right: the text says what was wrong, where, and what to do next.

    Shown without a traceback; everything else is a bug and keeps its own.
    """


class Interrupted(UserError):
    """A signal that asked the process to end: the work under way was given up, and the same command continues with it."""
