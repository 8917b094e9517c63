"""A real S3 server with conditional writes (versitygw) for tests; buckets are folders below its
own.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType

import pytest

from laggard.storage import Settings
from patience import patient

KEYS = ("tester", "secret-of-the-tester")
REGION = "us-east-1"
_TOOL = Path(__file__).parents[1] / ".tools" / "versitygw"


class S3Server:
    """Runs while it is entered; `stop` and `start` make an outage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "buckets" / "lags").mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.keys = KEYS
        self._process: subprocess.Popen[bytes] | None = None
        self.credentials_file = folder / "credentials"
        self.write_keys(KEYS)

    def __enter__(self) -> S3Server:  # noqa: PYI034 - Self is of Python 3.11
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    def write_keys(self, keys: tuple[str, str]) -> None:
        """Replace the file that clients read."""
        new = self.credentials_file.with_suffix(".new")
        new.write_text(
            f"[default]\naws_access_key_id = {keys[0]}\naws_secret_access_key = {keys[1]}\n"
        )
        new.chmod(0o600)
        new.replace(self.credentials_file)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> Settings:
        return Settings(self.endpoint, REGION, str(self.credentials_file), 5)

    def start(self) -> None:
        """Wait until it takes connections."""
        tool = str(_TOOL) if _TOOL.exists() else shutil.which("versitygw")
        if tool is None:
            lacking = "versitygw is missing: make tools"
            pytest.fail(lacking) if os.environ.get("CI") else pytest.skip(lacking)
        command = [
            tool,
            "--access",
            self.keys[0],
            "--secret",
            self.keys[1],
            "--port",
            f"127.0.0.1:{self.port}",
        ]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "posix", str(self.folder / "buckets")],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        limit = time.monotonic() + patient(20)
        while time.monotonic() < limit:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        pytest.fail(f"the S3 server does not start: {(self.folder / 'server.log').read_text()}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(patient(20))
            self._process = None
