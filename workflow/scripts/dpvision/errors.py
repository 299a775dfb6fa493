"""The one exception that is meant for the person at the keyboard."""


class UserError(Exception):
    """Something the user can put right: the text says what was wrong, where, and what to do next.

    Shown without a traceback; everything else is a bug and keeps its own.
    """


class Interrupted(UserError):
    """A signal asked the process to leave: the work under way was given up, and the same command goes on with it."""
