"""What a user can do wrong, as exceptions whose message says what was found and what to change.

The command line prints these without a traceback; anything else that is raised is a fault of the program and keeps its
traceback.
"""


class UserError(Exception):
    """Something outside the program is wrong, and the message says what was found and what to do about it."""


class ConfigError(UserError):
    """A setting does not fit: names the key, the value found, the values possible."""


class CorpusError(UserError):
    """A corpus cannot be read: names the file and the line, or the data set and its field."""


class CheckpointError(UserError):
    """A checkpoint cannot be used: names the file and what in it does not fit."""


class TrainingError(UserError):
    """A training cannot go on: names the step and the batch."""
