"""What a user is told of errors that are no fault of the program."""

from hydra.errors import HydraException

from seq2seq.cli.messages import user_message


def test_a_missing_plugin_names_its_extra():
    message = user_message(HydraException("In 'hydra/config': Could not find 'hydra/sweeper/optuna'"))
    assert message.splitlines()[0] == "needs an extra: pip install -c constraints.txt -e '.[optuna]'"
    assert user_message(HydraException("Could not find 'hydra/sweeper/other'")) == (
        "Could not find 'hydra/sweeper/other'"
    )


def test_a_full_disk_is_said_wherever_it_shows():
    try:
        try:
            raise OSError(28, "No space left on device", "metrics.csv")
        except OSError as error:
            raise RuntimeError("logging failed") from error
    except RuntimeError as error:
        message = user_message(error)
    assert message.startswith("the disk is full: [Errno 28] No space left on device: 'metrics.csv'; make room")
    assert user_message(OSError(5, "Input/output error")) is None
