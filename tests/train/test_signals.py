import signal

import pytest

from gyroformer.train.signals import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_noted_the_second_ends_at_once(number):
    before = signal.getsignal(number)
    with stop_requests() as stop:
        assert not stop
        signal.raise_signal(number)
        assert stop
        assert stop.signal == number
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before


def test_handlers_come_back_after_an_error():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RuntimeError), stop_requests():
        raise RuntimeError
    assert signal.getsignal(signal.SIGTERM) is before
