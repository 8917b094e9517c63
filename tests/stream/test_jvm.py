import os
import subprocess
import sys

from laggard.stream.job.jvm import is_alive


def test_a_process_that_ended_is_not_alive_although_nobody_waited_for_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    assert is_alive(process.pid)
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is left as it is
    assert not is_alive(process.pid)
    process.wait()
    assert not is_alive(process.pid)
