"""Who is in which group: every kind that a Kafka 4.2 broker knows, and the groups that change."""

from dataclasses import dataclass

TOPICS = {"letters": 4, "parcels": 2, "doomed": 2}
LATER = {"absent": 2}  # a streams group waits for it
CLASSIC = ("range", "cooperative")


@dataclass(frozen=True)
class Member:
    """A client, with the kind that Members.java knows it by; its name is its client id."""

    kind: str
    name: str
    group: str
    wanted: str = "letters"
    instance: str | None = None

    @property
    def topics(self) -> list[str]:
        return ["letters"] if self.kind == "expression" else self.wanted.split(",")


FIRST = (
    Member("range", "eager-1", "eager", "letters,parcels"),
    Member("range", "eager-2", "eager", "letters,parcels"),
    Member("cooperative", "cooperative-1", "cooperative"),
    Member("cooperative", "cooperative-2", "cooperative"),
    Member("range", "static-1", "static", instance="one"),
    Member("range", "static-2", "static", instance="two"),
    Member("consumer", "modern-1", "modern", "letters,parcels"),
    Member("consumer", "modern-2", "modern", instance="two"),
    Member("expression", "modern-3", "modern", "let.*"),
    Member("share", "shared-1", "shared"),
    Member("share", "shared-2", "shared"),
    Member("streams", "streamed-1", "streamed", "letters,parcels"),
    Member("streams", "streamed-2", "streamed", "letters,parcels"),
    Member("streams", "waiting-1", "waiting", "absent"),
    Member("range", "bereft-1", "bereft-classic", "doomed,letters"),
    Member("consumer", "bereft-2", "bereft-consumer", "doomed,letters"),
    Member("share", "bereft-3", "bereft-share", "doomed,letters"),
    Member("range", "ending-1", "ending-classic", "parcels"),
    Member("consumer", "ending-2", "ending-consumer", "parcels"),
    Member("share", "ending-3", "ending-share", "parcels"),
    Member("streams", "ending-4", "ending-streams", "parcels"),
    Member("cooperative", "online-1", "online"),
    Member("cooperative", "online-2", "online"),
    Member("range", "offline-1", "offline"),
    Member("range", "restless-0", "restless"),
)
LATE = Member("consumer", "late-1", "late")
SIMPLE = ("simple", "trimmed")  # only ever committed to
ENDING = tuple(f"ending-{kind}" for kind in ("classic", "consumer", "share", "streams"))
