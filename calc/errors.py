"""The one exception that a user's mistake raises anywhere in calc."""


class InputError(ValueError):
    """Something given to calc cannot be used; the message says what, why, and what is needed."""
