"""What a user is told of errors that are no fault of the program."""

from hydra.errors import HydraException

from seq2seq.cli.messages import user_message


def test_a_missing_plugin_names_its_extra():
    message = user_message(HydraException("In 'hydra/config': Could not find 'hydra/sweeper/optuna'"))
    assert message.splitlines()[0] == "needs an extra: pip install -c constraints.txt -e '.[optuna]'"
    assert user_message(HydraException("Could not find 'hydra/sweeper/other'")) == (
        "Could not find 'hydra/sweeper/other'"
    )
