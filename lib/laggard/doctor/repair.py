"""Give tables a new checkpoint when theirs is damaged, missing or not their own.

All that a checkpoint holds for us is in the newest `batches` row: positions, poll, and the versions
of the tables that are the state. Nothing is deleted but rows that were never visible.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from laggard.config.sections import ADMIN
from laggard.errors import DAMAGED, REFUSED, UNREACHABLE, LaggardError
from laggard.stream.job.checkpoint import check_checkpoint
from laggard.stream.job.identity import (
    Found,
    Identity,
    check_frozen,
    check_start,
    find_origin,
    find_state,
    follows_another,
    rebuilt,
)
from laggard.stream.job.starting import look_up, put_aside, settle
from laggard.tables.delta import create_tables
from laggard.tables.unpublished import remove_unpublished, tables_with_unpublished

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.config.sections import Job
    from laggard.tables.lease import Lease


@dataclass(frozen=True, slots=True)
class Repair:
    """The fault, the repair steps, and the identity to go on under; None to begin with nothing."""

    reason: str
    steps: list[str]
    job: Job
    found: Found
    identity: Identity | None
    lease: Lease | None = None

    def carry_out(self) -> Iterator[str]:
        """Carry out the repair; the next start or another repair finishes an interrupted one."""
        if self.identity is None:
            put_aside(self.job.checkpoint, uuid.uuid4().hex)
            remove_unpublished(self.job.tables, -1, self.lease)
        else:
            settle(self.job, self.found, self.identity, self.lease)
        yield "repaired; laggard run goes on"


def plan_repair(config: Config, lease: Lease | None = None) -> Repair | None:
    """Find faults that a start would refuse; None if it would go on.

    This needs the writer lock, and an answer of the brokers.
    """
    job = config.job
    topic = look_up(config.cluster)
    if topic is None:
        raise LaggardError(
            "the brokers do not say which offsets topic the tables belong to",
            cause=f"no answer about {config.cluster.offsets_topic} from "
            f"{', '.join(config.cluster.bootstrap_servers)}",
            fix="check [cluster] with: laggard doctor",
            exit_code=UNREACHABLE,
        )
    create_tables(job.tables, lease=lease)
    state = find_state(job.tables, job.checkpoint)
    wanted = Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
    try:
        identity = check_start(state, wanted)
        if state.has_checkpoint and not follows_another(identity, state.batch_checkpoint_id):
            check_checkpoint(job.checkpoint)
    except LaggardError as error:
        if error.exit_code not in (REFUSED, DAMAGED):
            raise
        return replace(_planned(job, state, wanted, f"{error.what} ({error.cause})"), lease=lease)
    return None


def _resumption(identity: Identity, *, is_other: bool) -> str:
    if ADMIN in (identity.offsets_topic_id, identity.replaced_topic_id):
        if is_other:
            return "begin again, as cluster.source was changed"
        return "ask the coordinators of all groups"
    if is_other:
        return "read the recreated offsets topic from its start"
    return "read on at the positions of that batch"


def _planned(job: Job, state: Found, wanted: Identity, reason: str) -> Repair:
    before = find_origin(state, wanted)
    if before is not None:
        check_frozen(before, wanted)
    aside = f"move {job.checkpoint} aside, keeping it"
    if state.newest_batch_id is None:
        steps = [
            aside,
            "delete rows that were never published",
            "begin with the first record: nothing is published yet",
        ]
        return Repair(reason, steps, job, state, None)
    replaced = ""
    if before and before.offsets_topic_id != wanted.offsets_topic_id:
        replaced = before.offsets_topic_id
    identity = rebuilt(state, wanted, replaced_topic_id=replaced)
    unpublished = tables_with_unpublished(job.tables, state.newest_batch_id)
    steps = [
        *([aside] if state.has_checkpoint else []),
        (
            f"go on after batch {state.newest_batch_id} as batch {identity.base_batch_id}, under a "
            "new checkpoint id"
        ),
        _resumption(identity, is_other=bool(replaced)),
    ]
    if unpublished:
        steps.append(f"delete rows that were never published from {', '.join(unpublished)}")
    return Repair(reason, steps, job, state, identity)
