"""Benchmarks of several processes end when one of them fails."""

import multiprocessing
import os
import signal
import time

import pytest
from benchmarks.process_groups import join_all

CONTEXT = multiprocessing.get_context("spawn")


def started(target, *args):
    process = CONTEXT.Process(target=target, args=args, daemon=True)
    process.start()
    return process


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (lambda: started(os._exit, 3), "process 1 of the 2 of sums has failed with the error"),
        (lambda: started(signal.raise_signal, signal.SIGKILL), "process 1 .* ended by SIGKILL"),
    ],
    ids=["an error", "a signal"],
)
def test_a_process_that_fails_ends_the_others(failing, message):
    processes = [started(time.sleep, 600), failing()]
    with pytest.raises(SystemExit, match=message):
        join_all(processes, "sums", 300)
    assert not any(process.is_alive() for process in processes)


def test_processes_that_end_are_joined_and_others_at_the_deadline():
    ended, sleeping = started(os._exit, 0), started(time.sleep, 600)
    join_all([ended], "sums")
    join_all([ended, sleeping], "sums", 0.1)
    assert ended.exitcode == 0 and sleeping.is_alive()
    sleeping.kill()
    sleeping.join()


class EndsWhileAsked:
    """A process whose exit code comes between the first question for it and the second."""

    def __init__(self):
        self.sentinel, writing = os.pipe()
        os.close(writing)
        self.codes = iter([None])

    @property
    def exitcode(self):
        return next(self.codes, 1)

    def kill(self):
        pass

    def join(self):
        os.close(self.sentinel)


def test_an_exit_code_that_comes_late_is_not_lost():
    with pytest.raises(SystemExit, match="process 0 of the 1 of sums has failed"):
        join_all([EndsWhileAsked()], "sums", 60)
