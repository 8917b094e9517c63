"""While nothing moves, the tables say what Kafka's own tools say."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from e2e.conftest import ODD_COMMITS, Paused
from e2e.kit import WINDOW, Row, unique
from e2e.oracle import Described, Dumped, generations
from patience import patient

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e]


def check_lag_equals_tool(
    partitions: Mapping[tuple[str, str, int], Row], described: Mapping[Any, Described], log: str
) -> None:
    # of a commit ahead of the log the tool has a negative lag, and a row for one that its broker
    # says is none
    partitions, described = (
        {key: row for key, row in each.items() if key[0] != "odd"}
        for each in (partitions, described)
    )
    theirs = {
        key: (each.current_offset, each.log_end_offset, each.lag) for key, each in described.items()
    }
    ours = {
        key: (row["committed_offset"], row["log_end_offset"], row["lag"])
        for key, row in partitions.items()
    }
    assert ours == theirs, log
    statuses = {key: row["status"] for key, row in partitions.items()}
    assert statuses == {
        key: "no_commit" if each.current_offset is None else "ok" for key, each in described.items()
    }, log


def check_last_commits(
    partitions: Mapping[tuple[str, str, int], Row], dumped: Iterable[Dumped], log: str
) -> None:
    last: dict[tuple[str, str, int], tuple[Any, ...]] = {}
    for record in dumped:
        if record.type not in (0, 1):
            continue
        key = (record.key["group"], record.key["topic"], record.key["partition"])
        data = record.data
        if data is None:
            last.pop(key, None)
        elif data["offset"] < 0:
            last.pop(key, None)  # to the broker there is no offset
        else:
            # version 1 has none
            epoch = None if data.get("leaderEpoch", -1) == -1 else data["leaderEpoch"]
            last[key] = (
                data["offset"],
                epoch,
                time_of(data["commitTimestamp"]),
                record.partition,
                record.offset,
            )
    names = (
        "committed_offset",
        "leader_epoch",
        "commit_timestamp",
        "commit_source_partition",
        "commit_source_offset",
    )
    ours = {
        key: tuple(row[name] for name in names)
        for key, row in partitions.items()
        if row["committed_offset"] is not None
    }
    assert ours == last, log


def check_windows(windows: Iterable[Row], gaps: Iterable[Row], log: str) -> None:
    keys = ("group", "topic", "topic_id", "partition")
    by_key: dict[Any, list[Row]] = {}
    found = [gap for gap in gaps if gap["gap_scope"] == "all"]
    for row in unique(windows, *keys, "window_start").values():
        by_key.setdefault(tuple(row[name] for name in keys), []).append(row)
        expected = (
            max(row["log_end_offset"] - row["committed_offset"], 0)
            if row["status"] == "ok"
            else None
        )
        assert row["lag"] == expected, f"{row}\n{log}"
        assert row["window_end"] - row["window_start"] == timedelta(seconds=WINDOW), row
        if row["status"] == "ok" and row["ahead_records"] == 0:
            assert row["lag_min"] <= row["lag"] <= row["lag_max"], row
    for rows in by_key.values():
        rows.sort(key=lambda row: row["window_start"])
        for before, after in pairwise(rows):
            reached = before["window_end"]
            # one after a late tick, one as the clock is set
            for gap in sorted(found, key=lambda gap: gap["gap_from"]):
                if gap["gap_from"] <= reached:
                    reached = max(reached, gap["gap_to"])
            assert reached >= after["window_start"], f"a hole between {before} and {after}\n{log}"


def time_of(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=milliseconds)


def test_partition_status_equals_the_groups_tool(paused: Paused) -> None:
    described = paused.described
    groups = {group for group, _, _ in described}
    assert {"live", "other", "empty", "simple", "counted", "transactional"} <= groups
    assert any(each.current_offset is None for each in described.values())

    check_lag_equals_tool(paused.view.partitions, described, paused.place.tail())


def test_extreme_commits_are_a_status_of_their_own_row(paused: Paused) -> None:
    rows = {
        place: row for (group, _, place), row in paused.view.partitions.items() if group == "odd"
    }
    lag = paused.described["odd", "orders", 3].lag
    assert lag is not None
    assert {
        place: (row["status"], row["committed_offset"], row["lag"]) for place, row in rows.items()
    } == {
        0: ("committed_ahead", ODD_COMMITS[0], None),
        1: ("committed_ahead", ODD_COMMITS[1], None),
        2: ("no_commit", None, None),
        3: ("ok", 3, lag),
    }, paused.place.tail()
    assert rows[2]["error"] == "NEGATIVE_OFFSET"
    known = {
        place: each.current_offset
        for (group, _, place), each in paused.described.items()
        if group == "odd"
    }
    assert {known[place] for place in (0, 1, 3)} == {ODD_COMMITS[0], ODD_COMMITS[1], 3}
    assert known.get(2) in (None, -1)  # to the broker there is no offset
    group = paused.view.groups["odd"]
    assert (group["status"], group["lag"], group["lag_known"]) == ("partial", None, lag)


def test_a_partition_never_committed_has_a_row_and_no_lag(paused: Paused) -> None:
    rows = [row for (group, _, _), row in paused.view.partitions.items() if group == "live"]

    assert len(rows) == 4
    bare = [row for row in rows if row["committed_offset"] is None]
    assert len(bare) == 3
    assert {
        (row["status"], row["lag"], row["time_lag_seconds"], row["commit_timestamp"])
        for row in bare
    } == {("no_commit", None, None, None)}


def test_group_states_and_types_are_what_the_broker_says(paused: Paused) -> None:
    groups = paused.view.groups
    described = {
        name: (groups[name]["group_state"], groups[name]["group_type"], groups[name]["members"])
        for name in groups
    }

    assert described["live"] == ("Stable", "classic", 2), paused.place.tail()
    assert described["other"] == ("Stable", "classic", 1)
    assert described["empty"] == ("Empty", "classic", 0)
    assert described["simple"] == ("Empty", "simple", None)
    assert groups["other"]["static_members"] == 1


def test_last_commits_equal_the_dump(paused: Paused) -> None:
    check_last_commits(paused.view.partitions, paused.view.read(paused.dumped), paused.place.tail())


def test_generations_equal_the_dump(paused: Paused) -> None:
    records = {
        (each.partition, each.offset): each for each in generations(paused.view.read(paused.dumped))
    }
    rows = unique(paused.view.rows("generations"), "source_partition", "source_offset")
    assert rows.keys() == records.keys(), paused.place.tail()

    for place, row in rows.items():
        record, data = records[place], records[place].data
        assert row["group"] == record.key["group"]
        assert row["record_timestamp"] == time_of(record.time_ms)
        if data is None:
            assert (row["kind"], row["generation"], row["member_count"]) == (
                "tombstone",
                None,
                None,
            )
            continue
        ours = {
            "protocolType": row["protocol_type"] or "",
            "generation": row["generation"],
            "protocol": row["assignor"],
            "leader": row["leader"],
            "currentStateTimestamp": row["state_timestamp"],
            "members": row["member_count"],
            "static": row["static_count"],
        }
        members = data["members"]
        assert ours == {
            **{name: data[name] for name in ("protocolType", "generation", "protocol", "leader")},
            "currentStateTimestamp": time_of(data["currentStateTimestamp"]),
            "members": len(members),
            "static": sum(each["groupInstanceId"] is not None for each in members),
        }


def test_members_equal_the_dump(paused: Paused) -> None:
    described = {
        (each.partition, each.offset, member["memberId"]): (member, each.data)
        for each in paused.view.read(paused.dumped)
        if each.type == 2 and each.data is not None
        for member in each.data["members"]
    }
    rows = unique(
        paused.view.rows("group_members"), "source_partition", "source_offset", "member_id"
    )
    assert rows.keys() == described.keys(), paused.place.tail()
    assert any(member["groupInstanceId"] for member, _ in described.values())

    for key, row in rows.items():
        member, data = described[key]
        ours = {
            "groupInstanceId": row["group_instance_id"],
            "clientId": row["client_id"],
            "clientHost": row["client_host"],
            "sessionTimeout": row["session_timeout_ms"],
            "rebalanceTimeout": row["rebalance_timeout_ms"],
            "leader": row["is_leader"],
            "topics": row["topics"],
            "assigned": {(each["topic"], each["partition"]) for each in row["assigned"]},
        }
        assert ours == {
            **{name: member[name] for name in ours.keys() & member.keys()},
            "leader": member["memberId"] == data["leader"],
            "topics": member["subscription"]["topics"],
            "assigned": {
                (each["topic"], partition)
                for each in member["assignment"]["assignedPartitions"]
                for partition in each["partitions"]
            },
        }


def test_windows_hold_lag_only_where_it_is_known_and_leave_no_hole(paused: Paused) -> None:
    assert paused.view.windows

    gaps = [row for row in paused.place.rows("batches") if row["kind"] == "gap"]
    check_windows(paused.view.windows, gaps, paused.place.tail())


def test_an_aborted_transactions_commit_does_not_count(paused: Paused) -> None:
    partitions = paused.view.partitions

    assert partitions["transactional", "orders", 1]["committed_offset"] == 7, paused.place.tail()
    assert not [key for key in partitions if key[0] == "only-aborted"]
    assert "only-aborted" not in paused.view.groups


def test_an_expired_commit_leaves_the_live_view_and_is_reported_once(paused: Paused) -> None:
    assert not [key for key in paused.view.partitions if key[0] == paused.expiring], (
        paused.place.tail()
    )
    events = [row for row in paused.view.rows("group_events") if row["group"] == paused.expiring]
    assert sorted(row["kind"] for row in events) == [
        "group_created",
        "group_deleted",
        "offset_deleted",
    ]
    assert {row["from_offset"] for row in events} == {None, 5}


def test_a_deleted_group_leaves_the_tables_with_an_event(paused: Paused) -> None:
    assert not [key for key in paused.view.partitions if key[0] == "leaving"], paused.place.tail()
    assert "leaving" not in paused.view.groups
    events = [row for row in paused.view.rows("group_events") if row["group"] == "leaving"]
    assert [row["kind"] for row in events if row["topic"] is None] == ["group_deleted"]
    assert [
        (row["kind"], row["from_offset"], row["to_offset"]) for row in events if row["topic"]
    ] == [("offset_deleted", 5, None)]


def test_a_topic_without_commits_is_watched_but_not_invented(paused: Paused) -> None:
    assert not [key for key in paused.view.partitions if key[1] == "quiet"]
    rows = [row for row in paused.view.rows("topic_windows") if row["topic"] == "quiet"]
    assert {row["partition"] for row in rows} == {0, 1}, paused.place.tail()
    assert {(row["status"], row["log_start_offset"], row["log_end_offset"]) for row in rows} == {
        ("ok", 0, 40)
    }


def test_a_deleted_topic_never_has_lag_and_its_tombstones_retire_it(paused: Paused) -> None:
    key = ("of-doomed", "doomed", 0)
    seen = [tick[key] for tick in paused.statuses if key in tick]

    assert key not in paused.view.partitions, paused.place.tail()
    # the poll of the tick in which the topic went may still have met it
    late = [row for row in seen if row["status"] != "ok"]
    assert {(row["status"], row["lag"]) for row in late} <= {
        ("topic_missing", None),
        ("no_end_offset", None),
    }, seen
    assert [
        row["kind"] for row in paused.view.rows("group_events") if row["topic"] == "doomed"
    ] == ["offset_deleted"]


def test_every_record_read_has_one_outcome(paused: Paused) -> None:
    ticks = [row for row in paused.place.rows("batches") if row["kind"] != "gap"]

    assert all(
        row["records"] == row["decoded"] + row["tombstones"] + row["unknown"] + row["dead"]
        for row in ticks
    )
    assert sum(row["unknown"] + row["dead"] for row in ticks) == 0, paused.place.tail()


def test_the_exporters_numbers_equal_the_tables_of_its_batch(paused: Paused) -> None:
    samples, view = paused.scraped, paused.scraped_view
    pairs: dict[tuple[str, str], list[Row]] = {}
    for (group, topic, _), row in view.partitions.items():
        pairs.setdefault((group, topic), []).append(row)

    def by_pair(name: str) -> dict[tuple[str, str], float]:
        return {
            (dict(key)["group"], dict(key)["topic"]): value for key, value in samples[name].items()
        }

    known = {
        key: [row["lag"] for row in rows if row["status"] == "ok"] for key, rows in pairs.items()
    }
    whole = {
        key
        for key, rows in pairs.items()
        if all(row["status"] in ("ok", "no_commit") for row in rows)
    }
    sums = {key: sum(lags) for key, lags in known.items() if lags}
    assert list(samples["laggard_ready"].values()) == [1.0]
    assert by_pair("laggard_group_lag_records") == {
        key: value for key, value in sums.items() if key in whole
    }
    assert by_pair("laggard_group_lag_known_records") == sums
    assert by_pair("laggard_group_max_lag_records") == {
        key: max(lags) for key, lags in known.items() if lags
    }
    lags = {
        (dict(key)["group"], dict(key)["topic"], int(dict(key)["partition"])): value
        for key, value in samples["laggard_partition_lag_records"].items()
    }
    assert lags == {
        key: row["lag"] for key, row in view.partitions.items() if row["lag"] is not None
    }
    states = {
        dict(key)["group"]: dict(key)["laggard_group_state"]
        for key, value in samples["laggard_group_state"].items()
        if value
    }
    assert states == {group: row["group_state"] for group, row in view.groups.items()}
    generations = {
        dict(key)["group"]: value for key, value in samples["laggard_group_generation"].items()
    }
    assert generations == {
        group: row["generation"]
        for group, row in view.groups.items()
        if row["generation"] is not None
    }


def test_a_second_job_on_the_same_tables_is_refused_at_once(paused: Paused) -> None:
    code, output, seconds = paused.second_job

    assert code == 73, output
    assert "another process writes to" in output
    assert seconds < patient(10)


def test_the_audit_agrees_with_the_coordinators_and_the_exporter(paused: Paused) -> None:
    assert {code for code, checked in paused.audited.items() if not checked} == set()
