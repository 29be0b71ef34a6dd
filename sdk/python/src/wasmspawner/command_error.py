"""The error of a command."""


class CommandError(Exception):
    """An error for the user of the command, in a whole sentence."""
