"""The demo's children get its own settings, not those of the user, and end side by side."""

import socket
from pathlib import Path

import pytest

from demo.processes import comes_true
from laggard.cli.parser import build_parser
from laggard.demo.children import Child, child_environment, stop_children
from laggard.demo.run import Options, check_options
from laggard.errors import CONFIGURATION, LaggardError

SLOW = """
import signal, time
def end(*_):
    begun = time.monotonic()
    time.sleep({seconds})
    print(begun, time.monotonic(), flush=True)
    exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_the_users_own_configuration_does_not_reach_the_demo() -> None:
    environ = {
        "LAGGARD_CONFIG": "x.toml",
        "LAGGARD_JOB__TABLES": "x",
        "LAGGARD_JARS": "jars",
        "PATH": "bin",
    }
    library = str(Path(__file__).parents[2] / "lib")
    assert child_environment(environ) == {
        "LAGGARD_JARS": "jars",
        "PATH": "bin",
        "PYTHONPATH": library,
    }


def start(folder: Path, names: tuple[str, ...], seconds: float) -> dict[str, Child]:
    """Children that take so long to end after SIGTERM."""
    (folder / "slow.py").write_text(SLOW.format(seconds=seconds))
    children = {name: Child(name, ["slow"], folder, None) for name in names}
    assert comes_true(lambda: all("ready" in child.printed() for child in children.values()), 60)
    return children


@pytest.mark.full
def test_children_end_side_by_side(tmp_path: Path) -> None:
    children = start(tmp_path, ("job", "exporter", "load"), seconds=3)
    stop_children(children, 60)
    ends = [child.printed().split()[-2:] for child in children.values()]
    assert max(float(begun) for begun, _ in ends) < min(float(ended) for _, ended in ends)


def test_children_of_data_that_goes_away_are_not_waited_for(tmp_path: Path) -> None:
    children = start(tmp_path, ("job", "exporter", "load"), seconds=600)
    stop_children(children, 0)
    assert [child.printed().split()[-1] for child in children.values()] == ["ready"] * 3


def test_a_place_that_cannot_be_had_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for options in (
            Options(listen=address),
            Options(listen="192.0.2.1:80"),
            Options(work=tmp_path / "file" / "x"),
        ):
            with pytest.raises(LaggardError) as refused:
                check_options(options)
            assert refused.value.exit_code == CONFIGURATION
            assert len(str(refused.value).splitlines()) == 3
    check_options(Options(listen=address, work=tmp_path / "new"))


def test_a_folder_may_be_named_and_kept() -> None:
    args = build_parser("demo").parse_args(["demo", "--keep", "--work", "here"])
    assert (args.keep, args.work) == (True, Path("here"))
