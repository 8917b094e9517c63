"""The command: its verbs, its global options, and what a failure looks like."""

import argparse
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from laggard import __version__
from laggard.cli.logs import KEPT_FOR_ERRORS, LINES_PER_MINUTE, BoundedHandler, start_log
from laggard.cli.main import OWN_CONFIG, main
from laggard.cli.parser import VERBS, chosen_verb
from laggard.config import Config
from laggard.errors import DENIED, INTERNAL, INTERRUPTED, OK, USAGE, LaggardError

Run = Callable[[argparse.Namespace, Config], int]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _same_log_afterwards() -> Iterator[None]:
    root, levels = (
        logging.getLogger(),
        {name: logging.getLogger(name).level for name in ("", "kafka", "py4j")},
    )
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Put a function in the place of the verb `status`."""

    def replace(run: Run) -> None:
        module = SimpleNamespace(
            add_parser=lambda subparsers: subparsers.add_parser("status"), run=run
        )
        monkeypatch.setitem(sys.modules, "laggard.cli.verbs.status", module)

    return replace


def keep_in(seen: list[tuple[argparse.Namespace, Config]]) -> Run:
    def run(args: argparse.Namespace, config: Config) -> int:
        seen.append((args, config))
        return OK

    return run


def fail_with(error: BaseException) -> Run:
    def run(_args: argparse.Namespace, _config: Config) -> int:
        raise error

    return run


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_with_the_global_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == OK
    text = capsys.readouterr().out
    assert text.startswith(f"usage: laggard {name}")
    assert "--config FILE" in text
    assert "--set A.B=C" in text


def test_the_list_of_verbs_is_the_folder() -> None:
    folder = Path(str(sys.modules["laggard.cli.main"].__file__)).parent / "verbs"
    files = [*folder.glob("*.py"), *folder.glob("*/verb.py")]
    found = [path for path in files if "def add_parser(" in path.read_text(encoding="utf-8")]
    verbs = {path.parent.name if path.stem == "verb" else path.stem for path in found}
    assert verbs == set(VERBS)


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out.split()
    assert set(VERBS) <= set(words)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (OK, f"laggard {__version__}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-v"], "no verb is given"),
        (["nope"], 'there is no verb "nope"'),
        (["statsu"], "cause: did you mean status?"),
        (["--versoin"], "cause: did you mean --version?"),
        (["status", "--whatch"], "cause: did you mean --watch?"),
        (["status", "--lim", "3"], "unrecognized arguments: --lim 3"),
        (["--nope", "config", "show"], "unrecognized arguments: --nope"),
        (["config"], "the following arguments are required: action"),
        (["config", "shwo"], "did you mean show?"),
        (["config", "show", "--nope"], "unrecognized arguments: --nope"),
        (["config", "show", "-q", "-v"], "not allowed with argument"),
        (["export", "--listen", "8917"], "cause: expected host:port, got '8917'"),
    ],
)
def test_a_wrong_use_ends_with_64_and_names_what_is_near(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USAGE
    out, err = capsys.readouterr()
    assert (out, sentence in err) == ("", True)
    assert re.fullmatch(r"laggard: .+\n(cause: .+\n)?fix: laggard.* --help\n", err)


def test_without_a_word_it_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == OK
    assert capsys.readouterr().out.startswith("usage: laggard ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run"], "run"),
        (["--config", "run", "status"], "status"),
        (["--config=run", "--json", "status"], "status"),
        (["--set", "a=b", "-v", "query", "run"], "query"),
        (["--version"], None),
        (["--config"], None),
        ([], None),
    ],
)
def test_the_verb_is_found_among_the_options(words: list[str], expected: str | None) -> None:
    assert chosen_verb(words) == expected


def test_global_options_stand_before_or_after_the_verb(verb: Callable[[Run], None]) -> None:
    seen: list[tuple[argparse.Namespace, Config]] = []
    verb(keep_in(seen))
    before, after = "cluster.name=before", "job.tick_seconds=15"
    assert main(["--set", before, "--json", "status", "--set", after, "-v"]) == OK
    args, config = seen[0]
    assert (args.json, args.verbose, args.quiet, args.set) == (True, True, False, [before, after])
    assert (config.cluster.name, config.job.tick_seconds) == ("before", 15)


def test_a_verb_gets_the_file_it_is_given(verb: Callable[[Run], None]) -> None:
    seen: list[tuple[argparse.Namespace, Config]] = []
    verb(keep_in(seen))
    Path("here.toml").write_text('[cluster]\nname = "here"\n')
    assert main(["--config", "here.toml", "status"]) == OK
    assert main(["status", "--config", "here.toml"]) == OK
    assert [config.cluster.name for _, config in seen] == ["here", "here"]


def test_an_error_with_a_name_has_three_lines_and_its_code(
    verb: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(
        fail_with(
            LaggardError(
                "cannot read orders",
                cause="TOPIC_AUTHORIZATION_FAILED",
                fix="allow it",
                exit_code=77,
            )
        )
    )
    assert main(["status"]) == DENIED
    captured = capsys.readouterr()
    assert (
        captured.err
        == "laggard: cannot read orders\ncause: TOPIC_AUTHORIZATION_FAILED\nfix: allow it\n"
    )
    assert captured.out == ""


def test_any_other_error_is_short_too(
    verb: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(fail_with(ZeroDivisionError("first line\nsecond line")))
    assert main(["status"]) == INTERNAL
    expected = (
        "laggard: internal error: ZeroDivisionError: first line\nfix: run with -v for the "
        "traceback\n"
    )
    assert capsys.readouterr().err == expected


def test_verbose_shows_the_traceback(
    verb: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(fail_with(ZeroDivisionError()))
    assert main(["status", "-v"]) == INTERNAL
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2] == "laggard: internal error: ZeroDivisionError: no message"


def test_an_interrupt_ends_with_130_and_in_silence(
    verb: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(fail_with(KeyboardInterrupt()))
    assert main(["status"]) == INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_a_verb_with_a_configuration_of_its_own_ignores_a_broken_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("laggard.toml").write_text("[nonsense\n")
    assert "config" in OWN_CONFIG
    assert main(["config", "sample"]) == OK
    assert capsys.readouterr().out


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m laggard config sample | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (OK, "", 1)


def test_help_and_config_import_nothing_heavy() -> None:
    heavy = {
        "pyspark",
        "pandas",
        "numpy",
        "pyarrow",
        "kafka",
        "deltalake",
        "tornado",
        "prometheus_client",
    }
    program = (
        "import sys; from laggard.cli.main import main; main(['config', 'sample']); "
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=30
    )
    assert heavy.isdisjoint(done.stdout.splitlines()[-1].split())


def test_a_log_line_in_json_cannot_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    start_log("info", is_json=True)
    logging.getLogger("laggard.test").warning("group %s", 'a\n{"level": "error"}\x1b[2J')
    (line,) = capsys.readouterr().err.splitlines()
    written = json.loads(line)
    assert (written["level"], written["logger"]) == ("warning", "laggard.test")
    assert written["message"] == 'group a\n{"level": "error"}\x1b[2J'
    assert "\x1b" not in line


def test_a_log_line_for_people_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    start_log("info", is_json=False)
    logging.getLogger("laggard.test").warning('group "a"\nb\x1b[2J')
    logging.getLogger("laggard.test").debug("not shown")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition(" ")[2] == 'warning group "a"\\nb\\u001b[2J'


def test_an_error_in_the_log_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    start_log("info", is_json=True)
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logging.getLogger("laggard.test").exception("failed")
    assert "ZeroDivisionError" in json.loads(capsys.readouterr().err)["error"]


def test_a_flood_of_log_lines_is_cut_counted_and_leaves_room_for_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    handler = BoundedHandler(clock=lambda: now[0])
    for second in range(120):
        now[0] = float(second)
        for _ in range(10):
            handler.emit(logging.makeLogRecord({"levelno": logging.WARNING, "msg": "again"}))
        if second == 59:
            handler.emit(logging.makeLogRecord({"levelno": logging.ERROR, "msg": "what matters"}))

    lines = capsys.readouterr().err.splitlines()
    first, second = (
        lines[: lines.index("what matters") + 1],
        lines[lines.index("what matters") + 1 :],
    )
    assert (len(first), first.count("again")) == (LINES_PER_MINUTE - KEPT_FOR_ERRORS + 1, 30)
    assert second[0] == "570 log lines were left out in the last minute"
    assert len(second) == LINES_PER_MINUTE - KEPT_FOR_ERRORS


@pytest.mark.parametrize("level", ["debug", "info"])
def test_the_libraries_never_log_at_debug(level: str) -> None:
    start_log(level, is_json=True)
    assert not logging.getLogger("kafka").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("py4j.clientserver").isEnabledFor(logging.DEBUG)


def test_what_py4j_writes_past_its_own_logger_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """py4j calls `logging.info(…, exc_info=True)` on the root logger for a
    connection that ended.
    """
    start_log("info", is_json=False)
    written = {
        "levelno": logging.ERROR,
        "msg": "Exception while sending",
        "pathname": "/x/py4j/java_gateway.py",
    }
    logging.root.handle(logging.makeLogRecord(written))
    logging.getLogger("laggard.job").error("ours")
    assert "Exception while sending" not in (said := capsys.readouterr().err)
    assert "ours" in said
