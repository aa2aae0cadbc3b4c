"""The one exception that a user's mistake raises anywhere in calc."""


class InputError(ValueError):
    """Something given to calc cannot be used; the message says what, why, and what is needed."""


def shown(given: object) -> str:
    """What was given, short enough for the sentence that refuses it."""
    text = " ".join(repr(given).split())
    return text if len(text) <= 60 else text[:57] + "..."
