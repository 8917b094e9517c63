"""Names that clients chose never steer a terminal, in no verb and no format; in a file they are
what they are.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import pty
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.group_rows import group, member_row, rebalance_row
from laggard.cli.logs import TextLines
from laggard.cli.main import main
from tables import fixtures as made

# escape sequences, a C1 control that begins one in a single character, a right-to-left mark, DEL, a
# forged line
HOSTILE = "a\x1b[2J\x9b31m\u202eb\x7f\nlaggard: all is well\r"
QUERY = 'select "group", topics, topic_counters from group_status'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    counters = [{"topic": HOSTILE, "produced": 1}]
    rows: dict[str, list[dict[str, Any]]] = {
        "partition_status": [
            made.partition_row(HOSTILE, HOSTILE, 0),
            made.partition_row(HOSTILE, HOSTILE, 1, "no_end_offset"),
        ],
        "group_status": [
            group()
            | {
                "group": HOSTILE,
                "topics": [HOSTILE],
                "topic_counters": counters,
                "assignor": HOSTILE,
            },
            made.group_row("other" + HOSTILE),
        ],
        "group_members": [
            member_row(1, [(HOSTILE, 0)], group=HOSTILE, client_id=HOSTILE, client_host=HOSTILE)
        ],
        "rebalances": [rebalance_row(group=HOSTILE, left=[HOSTILE], straggler_slot=HOSTILE)],
        "topic_windows": [made.topic_row(HOSTILE, 0)],
    }
    versions = {name: made.write_rows(root, name, each) for name, each in rows.items()}
    made.write_rows(root, "batches", [made.batch_row(1, versions)])
    start = made.NOW - timedelta(minutes=20)
    found = {
        "started_at": start,
        "opened_at": start,
        "rule": "D20",
        "evidence_text": {"owner": HOSTILE},
    }
    found |= {"topic": HOSTILE, "subject": HOSTILE, "partitions": [0], "evidence": {}}
    made.write_evaluated(
        root,
        windows=[made.window_row(HOSTILE, HOSTILE)],
        findings=[made.finding_row("PARTITION_STALLED", HOSTILE, **found)],
    )
    return root


VERBS = (
    ("status",),
    ("status", "--rebalances"),
    ("status", "--group", "nobody" + HOSTILE),
    ("explain", HOSTILE),
    ("explain", HOSTILE, "--topic", HOSTILE),
    ("explain", HOSTILE, "--topic", "none" + HOSTILE),
    ("explain", "nobody" + HOSTILE),
    ("findings",),
    ("findings", "--group", "nobody" + HOSTILE),
    ("query", QUERY),
    ("query", f'select 1 as "{HOSTILE}"'),
    ("query", f'select nothing as "{HOSTILE}"'),
)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["page", "json"])
@pytest.mark.parametrize(
    "words", VERBS, ids=lambda words: " ".join(words)[:30].encode("unicode_escape").decode()
)
def test_what_a_verb_prints_steers_nothing(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], options: tuple[str, ...]
) -> None:
    code = main(["--set", f"job.tables={root}", *words, *options])
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert all(line.isprintable() for line in text.split("\n"))
        assert "\nlaggard: all is well" not in text
    assert shown.out or shown.err
    if options and code == 0:
        json.loads(shown.out)


def csv_of(root: Path, **streams: Any) -> None:
    words = ["--set", f"job.tables={root}", "query", QUERY, "--format", "csv"]
    subprocess.run(
        [sys.executable, "-m", "laggard", *words],
        check=True,
        timeout=60,
        env={**os.environ},
        **streams,
    )


@pytest.mark.full
def test_csv_keeps_every_byte_in_a_file_and_escapes_on_a_terminal(
    root: Path, tmp_path: Path
) -> None:
    with (tmp_path / "out.csv").open("wb") as out:
        csv_of(root, stdout=out)
    _, *rows = csv.reader(io.StringIO((tmp_path / "out.csv").read_bytes().decode(), newline=""))
    assert {row[0] for row in rows} == {HOSTILE, "other" + HOSTILE}
    ours, theirs = pty.openpty()
    csv_of(root, stdout=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # Linux says so at the end
            break
    os.close(ours)
    lines = shown.decode().replace("\r\n", "\n").split("\n")
    assert len(lines) == 4  # a title, two groups, and the end of the last line
    assert all(line.isprintable() for line in lines)
    assert r"a\x1b[2J\xc2\x9b31m" in lines[1]


def test_a_log_line_for_people_steers_nothing() -> None:
    def fail() -> None:
        raise ValueError(HOSTILE)

    try:
        fail()
    except ValueError:
        record = logging.makeLogRecord(
            {"msg": "group %s", "args": (HOSTILE,), "exc_info": sys.exc_info()}
        )
    text = TextLines().format(record)
    assert all(line.isprintable() for line in text.split("\n"))
