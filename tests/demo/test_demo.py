"""The demo, whole: what a newcomer sees within a minute is true, and nothing of it stays behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from laggard.demo.cast import CAST, HOT_PARTITION
from laggard.demo.run import QUESTIONS, child_environment, config_text
from laggard.demo.view import View


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text().replace("\0", " ")[:200])
        except OSError:  # it has ended, or is a zombie
            continue
    return found


def final_groups(printed: str) -> dict[str, dict[str, str]]:
    """The last table of groups: group to column to cell."""
    lines = printed.rpartition("At the end:\n")[2].split("\n\n")[0].splitlines()[1:]
    starts = [lines[0].index(title) for title in ("GROUP", "STATE")]
    rows = {}
    for line in lines[1:]:
        name = line[starts[0] : starts[1]].strip()
        cells = line[starts[1] :].replace("≥ ", "").split()
        rows[name] = {"state": cells[0], "members": cells[1], "lag": cells[2], "text": line}
    return rows


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.e2e
def test_each_group_of_the_demo_lags_in_its_own_way(tmp_path: Path) -> None:
    work = tmp_path / "demo"
    command = [sys.executable, "-m", "laggard", "demo", "--seconds", "40", "--work", str(work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0

    groups = final_groups(done.stdout)
    assert set(groups) == {part.group for part in CAST}
    assert {name for name, group in groups.items() if group["state"] == "Empty"} == {"archive"}
    assert int(groups["reporting"]["lag"]) > int(groups["checkout"]["lag"])
    assert int(groups["archive"]["lag"]) > int(groups["checkout"]["lag"])
    assert HOT_PARTITION in groups["fraud"]["text"]

    for table in ("partition_status", "group_status", "lag_windows", "generations", "batches"):
        assert DeltaTable.is_deltatable(str(work / "tables" / table))
    assert 'laggard_group_lag_records{cluster="demo",group="reporting",topic="orders"}' in done.stdout
    for question in QUESTIONS:
        answer = done.stdout.partition(question)[2].split("\n\n")[1].splitlines()
        assert answer  # at least the titles
    assert processes_in(work) == []


def test_the_configuration_of_the_demo_is_valid(tmp_path: Path) -> None:
    from laggard.config import load_config

    folder = tmp_path / 'a "quoted" folder, é'
    folder.mkdir()
    file = folder / "laggard.toml"
    file.write_text(config_text(folder, "127.0.0.1:9092"), encoding="utf-8")
    config = load_config(str(file), [], {})
    assert (config.job.tables, config.cluster.bootstrap_servers) == (str(folder / "tables"), ("127.0.0.1:9092",))


def test_the_users_own_configuration_does_not_reach_the_demo() -> None:
    environ = {"LAGGARD_CONFIG": "x.toml", "LAGGARD_JOB__TABLES": "x", "LAGGARD_JARS": "jars", "PATH": "bin"}
    library = str(Path(__file__).parents[2] / "lib")
    assert child_environment(environ) == {"LAGGARD_JARS": "jars", "PATH": "bin", "PYTHONPATH": library}


def test_without_a_terminal_blocks_come_every_ten_seconds(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as out:
        view = View(out)
        view.show(["first"])
        view.show(["too soon"])
        out.seek(0)
        assert out.read() == "first\n\n"


def test_a_terminal_is_redrawn_in_place() -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as out:
        view = View(out)
        view.show(["one", "two"])
        view.show(["three"])
    printed = os.read(ours, 1000).decode()
    os.close(ours)
    assert printed == "\x1b[Jone\r\ntwo\r\n\x1b[2F\x1b[Jthree\r\n"
