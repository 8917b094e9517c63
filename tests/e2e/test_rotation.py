"""Secrets and certificates exchanged under running jobs, which go on by themselves."""

import signal
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from authority import Authority
from e2e.kit import at, commit_simply
from e2e.secured import Secured
from e2e.secured_client import ALL_RIGHTS, OFFSETS_TOPIC, Client, Watched, watched_cluster
from patience import patient

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
    pytest.mark.release,
]
ORDERS = at("orders", 0), at("orders", 1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with watched_cluster(tmp_path_factory.mktemp("secured")) as found:
        yield found


def commit(cluster: Secured, offset: int) -> None:
    commit_simply(cluster.admin, "rotated", dict.fromkeys(ORDERS, offset))


@contextmanager
def watching(clients: dict[str, Client]) -> Iterator[dict[str, Watched]]:
    """A job for each client, all of which have published; each ends well, and no secret is
    anywhere.
    """
    jobs = {name: Watched(client) for name, client in clients.items()}
    try:
        for job in jobs.values():
            job.await_lag([9, 9], 120)
        yield jobs
        for job in jobs.values():
            job.process.send_signal(signal.SIGTERM)
        assert {name: job.process.wait(patient(20)) for name, job in jobs.items()} == dict.fromkeys(
            jobs, 0
        )
    finally:
        for job in jobs.values():
            job.process.kill()
            job.process.wait()
    assert [place for client in clients.values() for place in client.canaries()] == []


def test_an_exchanged_password_and_a_right_taken_away_need_nobody(
    cluster: Secured, tmp_path: Path
) -> None:
    user = "rotated"
    cluster.set_scram("first-CANARY-5", user)
    cluster.grant(f"User:{user}", *ALL_RIGHTS)
    file = cluster.secret("rotated", "first-CANARY-5")
    settings = cluster.settings("SCRAM-SHA-256") | {
        "security.username": user,
        "security.password_file": str(file),
    }
    commit(cluster, 1)
    with watching({"SCRAM-SHA-256": Client(tmp_path / "client", settings)}) as jobs:
        (job,) = jobs.values()
        cluster.set_scram("second-CANARY-6", user)
        job.await_line("a broker refuses the login")
        file.write_text("second-CANARY-6\n")
        commit(cluster, 2)
        job.await_lag([8, 8])

        read = ("TOPIC", OFFSETS_TOPIC, "READ", "LITERAL")
        cluster.revoke(f"User:{user}", read)
        commit(cluster, 3)  # without records nothing is read
        job.await_line("a broker denied the job's principal")
        cluster.grant(f"User:{user}", read)
        job.await_lag([7, 7])


def test_an_exchanged_password_or_clients_secret_needs_nobody(
    cluster: Secured, tmp_path: Path
) -> None:
    cluster.tokens.life = 15  # seconds; a token that is at hand serves on
    modes = ("SCRAM-SHA-512", "OAUTHBEARER")
    commit(cluster, 1)
    with watching(
        {mode: Client(tmp_path / mode, cluster.settings(mode)) for mode in modes}
    ) as jobs:
        cluster.passwords |= {"scram": "other-CANARY-7", "client": "other-CANARY-8"}
        cluster.set_scram(cluster.passwords["scram"])
        cluster.tokens.secret = cluster.passwords["client"]
        jobs["SCRAM-SHA-512"].await_line("a broker refuses the login")
        jobs["OAUTHBEARER"].await_line("no token from")
        for name in ("scram", "client"):
            cluster.secret(name, cluster.passwords[name])
        commit(cluster, 2)
        for job in jobs.values():
            job.await_lag([8, 8])


def test_a_broker_that_returns_with_other_certificates_and_passwords_needs_nobody(
    cluster: Secured, tmp_path: Path
) -> None:
    modes = ("SSL", "mTLS", "SASL_PLAINTEXT", "PLAIN")
    commit(cluster, 1)
    host, _, port = cluster.addresses["TLS"].rpartition(":")
    certificate = ssl.get_server_certificate((host, int(port)))
    with watching(
        {mode: Client(tmp_path / mode, cluster.settings(mode)) for mode in modes}
    ) as jobs:
        clients = Authority(tmp_path / "clients")
        cluster.exchange("other-CANARY-9", clients)
        assert ssl.get_server_certificate((host, int(port))) != certificate
        commit(cluster, 2)
        jobs["SSL"].await_lag([8, 8])  # the same authority signed both
        jobs["mTLS"].await_line("a broker refuses the TLS connection")
        for mode in ("SASL_PLAINTEXT", "PLAIN"):
            jobs[mode].await_line("a broker refuses the login")
        cluster.issue_client(clients)
        cluster.secret("plain", cluster.passwords["plain"])
        for job in jobs.values():
            job.await_lag([8, 8])
