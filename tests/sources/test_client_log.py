"""kafka-python's log: nothing that was sent is in it, whatever level somebody gives its loggers."""

import logging
import socket

import pytest

from laggard.sources.connections import Connections


def test_a_request_is_not_logged_though_everything_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name in ("kafka", *logging.root.manager.loggerDict):
        if f"{name}.".startswith("kafka."):
            caplog.set_level(logging.DEBUG, name)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connections = Connections([f"127.0.0.1:{silent.getsockname()[1]}"], 0.5)
        connections.ask_any(None)
        connections.close()
    levels = {record.levelno for record in caplog.records if record.name.startswith("kafka.")}
    assert levels
    assert min(levels) > logging.DEBUG
