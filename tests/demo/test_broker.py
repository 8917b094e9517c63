"""The demo's Kafka: it answers when it says so, and nothing of it stays behind."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from demo.processes import comes_true, lives, members_of_group
from laggard.demo import broker as broker_module
from laggard.demo.broker import Broker
from laggard.demo.node import PORTS, free_ports
from laggard.errors import LaggardError
from patience import patient

pytestmark = [pytest.mark.broker, pytest.mark.full]
LIMIT_MS = 60_000
# The owner at its most awkward: the thread that started the broker ends, and a forked child that
# holds copies of all open files lives on.
OWNER = """
import os, threading, time
from laggard.demo.broker import Broker
broker = Broker()
starter = threading.Thread(target=broker.__enter__)
starter.start()
starter.join()
child = os.fork()
if child != 0:
    print(broker.pids[1], child, broker.work_dir, flush=True)
time.sleep(600)
"""


def admin(broker: Broker) -> KafkaAdminClient:
    """A client with a time limit on every call."""
    return KafkaAdminClient(
        bootstrap_servers=broker.bootstrap_servers,
        bootstrap_timeout_ms=LIMIT_MS,
        request_timeout_ms=LIMIT_MS,
    )


def test_one_node_serves_tools_and_clients_and_is_gone_afterwards() -> None:
    with Broker() as broker:
        pid, work_dir = broker.pids[1], broker.work_dir
        client = admin(broker)
        client.create_topics([NewTopic("orders", num_partitions=3, replication_factor=1)])
        client.close()
        tool = "org.apache.kafka.tools.TopicCommand"
        topics = broker.run_tool(tool, "--bootstrap-server", broker.bootstrap_servers, "--list")
        assert len(members_of_group(pid)) == 2

    assert topics.split() == ["orders"]
    assert members_of_group(pid) == []
    assert not work_dir.exists()


def test_a_stopped_node_returns_on_its_port_with_its_data(tmp_path: Path) -> None:
    # no shorter session: a node of a busy machine would lose it, and then no topic can be made
    with Broker(work_dir=tmp_path) as broker:
        address = broker.bootstrap_servers
        client = admin(broker)
        client.create_topics([NewTopic("orders", num_partitions=1, replication_factor=1)])
        client.close()
        broker.stop(1, signal.SIGKILL)
        assert broker.pids == {}
        broker.start(1)
        assert broker.bootstrap_servers == address

    # a kept folder can be used again, though on other ports
    with Broker(work_dir=tmp_path) as broker:
        client = admin(broker)
        assert client.list_topics() == ["orders"]
        assert client.describe_cluster()["cluster_id"] == (tmp_path / "cluster.id").read_text()
        client.close()


def test_a_failing_tool_is_an_error_with_what_it_said(tmp_path: Path) -> None:
    broker = Broker(work_dir=tmp_path)
    with pytest.raises(LaggardError, match="DumpLogSegments --nonsense failed") as caught:
        broker.run_tool("kafka.tools.DumpLogSegments", "--nonsense")

    assert "nonsense is not a recognized option" in caught.value.cause


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_an_owner_that_is_killed_leaves_no_broker_and_no_files_behind(sig: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, child, work_dir = owner.stdout.readline().split()
        group = int(pid)
        try:
            # long enough to see that the end of the starting thread is not taken for the owner's
            time.sleep(1)
            assert len(members_of_group(group)) == 2

            owner.send_signal(sig)
            assert comes_true(
                lambda: not members_of_group(group) and not Path(work_dir).exists(), patient(10)
            )
            assert lives(int(child))
        finally:
            owner.kill()
            os.kill(int(child), signal.SIGKILL)


def test_ctrl_c_reaches_the_owner_and_not_the_broker() -> None:
    with Broker() as broker:
        pid = broker.pids[1]
        assert os.getsid(pid) != os.getsid(0)


def test_settings_kafka_refuses_are_shown_with_its_own_words() -> None:
    with (
        pytest.raises(LaggardError, match="refused its settings") as caught,
        Broker(properties={"num.network.threads": "none"}),
    ):
        pass

    assert "num.network.threads" in caught.value.cause
    assert "\tat " not in caught.value.cause


def test_a_node_that_ends_while_starting_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    # formatting does not look at it, starting does
    bad = {"authorizer.class.name": "no.such.Authorizer"}
    with pytest.raises(LaggardError, match="Kafka node 1 ended while starting") as caught:
        Broker(work_dir=tmp_path, properties=bad).__enter__()

    assert "no.such.Authorizer" in caught.value.cause
    assert (tmp_path / "node-1" / "broker.log").exists()


def test_a_port_taken_by_another_process_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        answers = [[taken, *free_ports(1)]]
        monkeypatch.setattr(
            broker_module,
            "free_ports",
            lambda count: answers.pop() if answers else free_ports(count),
        )

        with Broker() as broker:
            port = int(broker.bootstrap_servers.rpartition(":")[2])

    assert answers == []
    assert port != taken
    assert port in PORTS


def test_three_nodes_answer_for_each_other_and_one_can_be_restarted() -> None:
    with Broker(nodes=3) as broker:
        first = broker.pids
        assert sorted(first) == [1, 2, 3]
        broker.stop(2)
        assert sorted(broker.pids) == [1, 3]
        broker.start(2)
        client = admin(broker)
        assert {member["broker_id"] for member in client.describe_cluster()["brokers"]} == {1, 2, 3}
        client.close()

    assert [pid for pid in first.values() if lives(pid)] == []
