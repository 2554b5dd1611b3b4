"""The one exception that a person, not a programmer, is meant to read."""


class InputError(ValueError):
    """Something given from outside cannot be used: says what, where, and what to do, in one line.

    The command line prints it without a traceback and exits with code 2.
    """
