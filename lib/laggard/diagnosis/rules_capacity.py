"""Rules D10 to D18, D51 and D52: capacity, hot and costly partitions, slow members, balance."""

from __future__ import annotations

from laggard.diagnosis.attributed import broker_correlated, costly_partition, hot_partition, slow_host, slow_member
from laggard.diagnosis.balance import arrival_skew, assignment_imbalance, idle_members
from laggard.diagnosis.capacity import at_partition_ceiling, capacity_burst, capacity_shortage
from laggard.diagnosis.observation import CAUSE, HYGIENE, Rule

__all__ = ["RULES"]

# what partitions and keys cost stands wherever more of them, or other ones, are advised
MORE_PARTITIONS = (
    "Add partitions only as a last step and once, for the expected peak with a margin: their number never goes down,"
    " each costs metadata and longer rebalances, and keys move to other partitions."
)
OTHER_KEYS = (
    "Changing the key breaks consumers that rely on it: old records stay where they are and the order per key is lost"
    " at the switch. Plan a new topic."
)
_ATTRIBUTION = ("attr_explained", "attr_purity", "attr_p")

RULES = (
    Rule(
        "D10",
        "CAPACITY_SHORTAGE",
        CAUSE,
        capacity_shortage,
        "All partitions fall behind together: the members consume less than arrives.",
        (
            "Add members up to members_desired; never more than members_ceiling.",
            "Write to the sink in larger batches.",
            "Make the work per record cheaper.",
        ),
        falsifier="consume_rate rises above arrival_rate while members and capacity stay the same",
        uses=("pack_utilisation", "drain_target_seconds", "trend_p", "trend_effect"),
    ),
    Rule(
        "D11",
        "CAPACITY_BURST",
        CAUSE,
        capacity_burst,
        "Arrivals were far above normal for a short time; the backlog is being worked off.",
        ("Wait for drain_seconds.", "Check whether the backlog breaks the time-lag objective."),
        avoid=("Do not add members for a burst that drains by itself.",),
        falsifier="arrivals rise again, or the lag stops falling",
        uses=("baseline_min_windows", "baseline_skip_seconds", "drain_min_share"),
    ),
    Rule(
        "D12",
        "AT_PARTITION_CEILING",
        CAUSE,
        at_partition_ceiling,
        "The group falls behind and one more member would get no partition.",
        (
            "Make the work per record cheaper, or batch the sink.",
            "Hand records to a pool of workers behind each consumer.",
            "Under range with several topics, change to an assignor that counts all of them together.",
            MORE_PARTITIONS,
        ),
        avoid=("Do not add members: they would stay idle.",),
        falsifier="consume_rate rises above arrival_rate while members and capacity stay the same",
        uses=("trend_p", "trend_effect"),
    ),
    Rule(
        "D13",
        "HOT_PARTITION_ARRIVAL",
        CAUSE,
        hot_partition,
        "Few partitions get more records than one member can handle.",
        (
            "Sample keys of these partitions: look for one large tenant, or a constant or missing key.",
            "Split or salt the hot key, or give it a topic of its own.",
            "Hand records to a pool of workers behind the consumer, by key where order matters.",
            OTHER_KEYS,
        ),
        avoid=(
            "Do not add consumers: a partition has one owner per group.",
            "Do not add partitions: a hot key stays on one of them.",
        ),
        falsifier="its owner consumes less than 0.8 of what it has shown",
        uses=("hot_ratio", "shape_gini_concentrated", *_ATTRIBUTION),
    ),
    Rule(
        "D14",
        "ARRIVAL_SKEW",
        HYGIENE,
        arrival_skew,
        "Some partitions get several times what the others get, without lag so far.",
        ("Look at how keys are spread before arrivals grow.",),
        falsifier="the arrival rates come closer",
        uses=("hot_ratio",),
        open_after=1,
    ),
    Rule(
        "D15",
        "COSTLY_PARTITION",
        CAUSE,
        costly_partition,
        "Partitions that get as much as the others take longer, whoever owns them.",
        (
            "Compare the size of their records and the work per record with the others.",
            "Take the expensive work out of the poll loop.",
            "Check the fetch limits of the broker that leads them.",
        ),
        avoid=("Do not add consumers: a partition has one owner per group.",),
        falsifier="after a move the lag stays with the member",
        uses=("storm_ratio", *_ATTRIBUTION),
    ),
    Rule(
        "D16",
        "SLOW_MEMBER",
        CAUSE,
        slow_member,
        "One member works off less than the others can, with no more to do.",
        (
            "Look at that instance: garbage collection, CPU limit, a busy neighbour, its connection to the sink.",
            "Restart or replace it only after that.",
        ),
        avoid=("Do not add members before it is repaired: it keeps its share.",),
        falsifier="after a move the lag follows a partition",
        uses=("slow_ratio", "slow_ratio_strong", *_ATTRIBUTION),
    ),
    Rule(
        "D17",
        "SLOW_HOST",
        CAUSE,
        slow_host,
        "All members on one host work off less than the others can.",
        ("Look at that host: CPU, disk, network, its other tenants.", "Move its members elsewhere."),
        avoid=("Do not add members to that host.",),
        falsifier="after a move the lag follows the member or a partition",
        uses=("slow_ratio", "slow_ratio_strong", *_ATTRIBUTION),
    ),
    Rule(
        "D18",
        "BROKER_CORRELATED",
        CAUSE,
        broker_correlated,
        "The partitions that one broker leads lag, the others do not.",
        (
            "Look at that broker: disk, network, in-sync replicas, request queues.",
            "Compare with other groups that read from it.",
        ),
        avoid=("Do not change the application, nor its number of members, first.",),
        falsifier="after a change of leader the lag stays with the partitions",
        uses=_ATTRIBUTION,
    ),
    Rule(
        "D51",
        "IDLE_MEMBERS",
        HYGIENE,
        idle_members,
        "Members have no partition, as there are more members than partitions to give.",
        (
            "Run no more than members_ceiling members.",
            "Under range with several topics, change to an assignor that counts all of them together.",
            "If they are meant as a standby, declare hot_standby.",
        ),
        falsifier="each member has a partition",
        open_after=1,
    ),
    Rule(
        "D52",
        "ASSIGNMENT_IMBALANCE",
        HYGIENE,
        assignment_imbalance,
        "Some members have much more to do than others by assignment.",
        (
            "Run a number of members that divides the number of partitions.",
            "Under range with several topics, change to an assignor that counts all of them together.",
        ),
        avoid=("Do not look for a fault in the fullest member first: it was given more.",),
        falsifier="the loads come closer without a change of assignment",
    ),
)
