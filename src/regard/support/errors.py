"""The two ways a command ends badly: the person asked for something that cannot be, or it went wrong."""


class Misuse(ValueError):
    """What was asked cannot be done as asked: a bad setting, a bad file, an unknown name. Exit status 2."""


class Failure(RuntimeError):
    """What was asked was fine and could not be carried out. Exit status 1."""
