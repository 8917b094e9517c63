from threading import Event, Thread

import pytest

from interrupting import LIMIT, is_ended_if_interrupted
from laggard.demo.flag import Flag


@pytest.mark.parametrize("line", range(1, 25))
def test_a_handler_may_set_it_at_any_moment_of_a_wait(line: int) -> None:
    flag = Flag()
    assert is_ended_if_interrupted(lambda: flag.wait(0.01), flag.set, line)


def test_all_waits_end_when_it_is_set_and_later_ones_do_not_begin() -> None:
    flag, ended = Flag(), [Event(), Event()]
    assert not flag.is_set()
    assert not flag.wait(0.0)

    def wait(end: Event) -> None:
        flag.wait()
        end.set()

    for each in ended:
        Thread(target=wait, args=(each,), daemon=True).start()
    flag.set()
    flag.set()
    assert all(each.wait(LIMIT) for each in ended)
    assert flag.is_set()
    assert flag.wait()
