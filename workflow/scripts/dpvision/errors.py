"""The one exception that is meant for the person at the keyboard."""


class UserError(Exception):
    """Something the user can put right: the text says what was wrong, where, and what to do next.

    Shown without a traceback; everything else is a bug and keeps its own.
    """


class ToldToLeave(UserError):
    """By a signal, with the state kept: the same command goes on."""
