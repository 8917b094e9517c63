"""Lives of groups as Kafka writes them (offsets-topic records in log order), for tests that cut and
repeat them.
"""

from __future__ import annotations

import encoder
from rebalance.modern import CONSUMER, SHARE, STREAMS, UNRELEASED, UNREVOKED, timed
from stream.simulation import Record, generation, group_tombstone

C, S, K = CONSUMER, SHARE, STREAMS
READER = {"m1": ("t",)}

CREATE = [
    C.member("a"),
    C.epoch(1),
    C.target("a", {"t": [0, 1]}),
    C.target_epoch(1),
    C.current("a", 1, {"t": [0, 1]}),
]
JOIN = [
    C.member("b"),
    C.epoch(2),
    C.target("a", {"t": [0]}),
    C.target("b", {"t": [1]}),
    C.target_epoch(2),
    C.current("b", 2, state=UNRELEASED),
    C.current("a", 1, {"t": [0]}, state=UNREVOKED, pending={"t": [1]}),
    C.current("a", 2, {"t": [0]}),
    C.current("b", 2, {"t": [1]}),
]
LEAVE = [
    *C.gone("b"),
    C.epoch(3),
    C.target("a", {"t": [0, 1]}),
    C.target_epoch(3),
    C.current("a", 3, {"t": [0, 1]}),
]
EMPTY = [*C.gone("a"), C.epoch(4)]
CONSUMER_LIFE = timed([*CREATE, *JOIN, *LEAVE, *EMPTY, *C.deleted(extra=[4])])

CLASSIC = {
    "session_timeout_ms": 45_000,
    "supported_protocols": [{"name": "range", "metadata": b""}],
}
UPGRADE = [
    group_tombstone(),
    C.member("m1", classic_member_metadata=CLASSIC),
    C.epoch(1),
    C.target("m1", {"t": [0, 1]}),
    C.target_epoch(1),
    C.current("m1", 1, {"t": [0, 1]}),
    C.member("b"),
    C.epoch(2),
    C.target("m1", {"t": [0]}),
    C.target("b", {"t": [1]}),
    C.target_epoch(2),
    C.current("b", 2, state=UNRELEASED),
    C.current("m1", 2, {"t": [0]}),
    C.current("b", 2, {"t": [1]}),
]
DOWNGRADE = [*C.deleted(["m1", "b"], extra=[4]), generation(2, READER), generation(3, READER)]
UPGRADED = timed([generation(0, protocol_type=""), generation(1, READER), *UPGRADE])
CHANGING_LIFE = timed([*UPGRADED, *DOWNGRADE, generation(4), group_tombstone()])

SHARE_LIFE = timed(
    [
        S.member("a"),
        S.epoch(1),
        S.of_group(
            15,
            {
                "initializing_topics": [
                    {"topic_id": "x" * 21 + "A", "topic_name": "t", "partitions": [0]}
                ],
                "initialized_topics": [],
                "deleting_topics": [],
            },
        ),
        S.target("a", {"t": [0, 1]}),
        S.target_epoch(1),
        S.current("a", 1, {"t": [0, 1]}),
        S.member("b"),
        S.epoch(2),
        S.target("b", {"t": [0, 1]}),
        S.target_epoch(2),
        S.current("b", 2, {"t": [0, 1]}),
        S.current("a", 2, {"t": [0, 1]}),
        *S.gone("a"),
        S.epoch(3),
        *S.gone("b"),
        S.epoch(4),
        *S.deleted(extra=[15]),
    ]
)


def topology(
    epoch: int = 0, topics: tuple[str, ...] = ("t",), regex: tuple[str, ...] = ()
) -> Record:
    subtopology = {
        "subtopology_id": "0",
        "source_topics": topics,
        "source_topic_regex": regex,
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    key = encoder.record_key(23, {"group_id": "g"})
    return Record(
        key, encoder.record_value(23, 0, {"epoch": epoch, "subtopologies": [subtopology]})
    )


STREAMS_LIFE = timed(
    [
        K.member("a"),
        topology(),
        K.epoch(1, validated_topology_epoch=0),
        K.target("a", {"0": [0, 1]}),
        K.target_epoch(1),
        K.current("a", 1, {"0": [0, 1]}),
        K.member("b"),
        K.epoch(2, validated_topology_epoch=0),
        K.target("a", {"0": [0]}),
        K.target("b", {"0": [1]}),
        K.target_epoch(2),
        K.current("b", 2, state=UNRELEASED),
        K.current("a", 1, {"0": [0]}, state=UNREVOKED, pending={"0": [1]}),
        K.current("a", 2, {"0": [0]}),
        K.current("b", 2, {"0": [1]}),
        *K.gone("a"),
        K.epoch(3, validated_topology_epoch=0),
        *K.gone("b"),
        K.epoch(4, validated_topology_epoch=0),
        *K.deleted(),
        K.of_group(23, None),
    ]
)

STATIC_LIFE = timed(
    [
        C.member("a", instance_id="one"),
        C.epoch(1),
        C.target("a", {"t": [0, 1]}),
        C.target_epoch(1),
        C.current("a", 1, {"t": [0, 1]}),
        C.current("a", -2, {"t": [0, 1]}),
        *C.gone("a"),
        C.member("a2", instance_id="one"),
        C.target("a2", {"t": [0, 1]}),
        C.current("a2", 0, {"t": [0, 1]}),  # what was a's, then where it stands
        C.current("a2", 1, {"t": [0, 1]}),
        C.member("a2", instance_id="one", server_assignor="uniform"),
        C.epoch(2),
    ]
)

LIVES = {
    "consumer": CONSUMER_LIFE,
    "classic to consumer and back": CHANGING_LIFE,
    "share": SHARE_LIFE,
    "streams": STREAMS_LIFE,
    "static": STATIC_LIFE,
}
