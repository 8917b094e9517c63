"""All rules in one place: those of a group in the order they are asked, and those of the cluster."""

from __future__ import annotations

from laggard.diagnosis import (
    cluster,
    rules_capacity,
    rules_commits,
    rules_evictions,
    rules_identity,
    rules_loss,
    rules_moves,
    rules_offsets,
    rules_rebalances,
    rules_scaling,
    rules_stalls,
    rules_timeouts,
    rules_unread,
)  # fmt: skip
from laggard.diagnosis.observation import META, Observation, Rule
from laggard.diagnosis.view import View


def _never(_: View) -> list[Observation]:
    return []  # the engine itself tells of it


RULE_FAILED = Rule(
    "D00",
    "RULE_FAILED",
    META,
    _never,
    "A rule, or a stage of the diagnosis, ended with an error: what it would have found of this group is not known.",
    ("report the error and the job's log",),
    open_after=1,
)
GROUP_RULES: tuple[Rule, ...] = (
    *rules_loss.RULES,
    *rules_capacity.RULES,
    *rules_stalls.RULES,
    *rules_unread.RULES,
    *rules_commits.RULES,
    *rules_offsets.RULES,
    *rules_rebalances.RULES,
    *rules_evictions.RULES,
    *rules_identity.RULES,
    *rules_timeouts.RULES,
    *rules_moves.RULES,
    *rules_scaling.RULES,
)
RULES: tuple[Rule, ...] = (RULE_FAILED, *cluster.RULES, *GROUP_RULES)
BY_CODE = {rule.code: rule for rule in RULES}
