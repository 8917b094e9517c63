"""One scenario for all tests: every kind of group on one broker, and five moments at which nothing
moves.
"""

import sys
from dataclasses import dataclass

import pytest
from kafka.admin import NewTopic

from e2e.kit import Place, Row, View, at, commit_simply
from e2e.live.members import ENDING, FIRST, LATE, LATER, SIMPLE, Member
from e2e.live.scenario import Moment
from e2e.live.setup import Setup, start_setup
from e2e.oracle import GROUP_TOOL

RESTLESS = 6  # changes of protocol, on line


@dataclass(frozen=True)
class Lived:
    """The whole scenario, read when it was over."""

    moments: dict[str, Moment]
    ticks: list[View]
    batches: list[Row]
    last: View
    replayed: View  # of a job that begins when all is over
    place: Place

    @property
    def settled_ticks(self) -> list[View]:
        """From the first moment on."""
        first = self.moments["settled"].view.batch["batch_id"]
        return [tick for tick in self.ticks if tick.batch["batch_id"] >= first]


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    with start_setup(tmp_path_factory.mktemp("live") / "job") as setup:
        run_scenario(setup)
        scenario, place = setup.scenario, setup.scenario.place
        place.audit("--live")
        scenario.run.stop()
        other = Place(place.folder.with_name("replayed"), scenario.servers)
        code, output, _ = other.exit_of(
            sys.executable, "-m", "laggard", "run", "--once", "--config", str(other.config)
        )
        assert code == 0, output
        other.audit()
        return Lived(
            scenario.moments,
            scenario.ticks(),
            place.rows("batches"),
            place.view(),
            other.view(),
            place,
        )


def run_scenario(setup: Setup) -> None:
    scenario, admin = setup.scenario, setup.admin
    for group in SIMPLE:
        commit_simply(scenario.servers, group, {at("letters", 0): 1, at("parcels", 1): 2})
    scenario.empty |= set(SIMPLE)
    scenario.join(*FIRST)
    scenario.rest("settled")

    scenario.join(
        Member("consumer", "online-3", "online"), Member("consumer", "online-4", "online"), LATE
    )
    scenario.stop("offline-1", "ending-1", "ending-2", "ending-3", "ending-4")
    scenario.restart("static-1")
    scenario.restart("modern-2")
    admin.delete_topics(["doomed"])
    del scenario.topics["doomed"]
    admin.create_topics([NewTopic(name, number, 1) for name, number in LATER.items()])
    scenario.topics |= LATER
    scenario.clients.tool(
        GROUP_TOOL, "--delete-offsets", "--group", "trimmed", "--topic", "parcels"
    )
    scenario.rest("mixed")

    scenario.stop("online-1", "online-2", "cooperative-1")
    scenario.join(
        Member("consumer", "offline-2", "offline"),
        Member("range", "eager-3", "eager", "letters,parcels"),
    )
    admin.delete_groups(list(ENDING))
    scenario.empty -= set(ENDING)
    scenario.rest("upgraded")

    scenario.join(Member("range", "online-5", "online"), Member("range", "online-6", "online"))
    scenario.stop("offline-2", "shared-1", "streamed-1")
    scenario.rest("mixed again")

    scenario.stop("online-3", "online-4")
    scenario.join(Member("range", "offline-3", "offline"))
    for number in range(RESTLESS):  # not in step with the ticks
        scenario.replace(
            f"restless-{number}",
            Member(f"{('consumer', 'range')[number % 2]}", f"restless-{number + 1}", "restless"),
        )
    scenario.rest("downgraded")


@pytest.fixture(params=["settled", "mixed", "upgraded", "mixed again", "downgraded"])
def moment(lived: Lived, request: pytest.FixtureRequest) -> Moment:
    return lived.moments[request.param]
