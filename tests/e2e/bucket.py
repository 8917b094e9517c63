"""A job whose tables are in a bucket of a real S3 server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from e2e.kit import Place
from s3 import S3Server

ROOT = "s3://lags/tables of é/prod"


@dataclass
class BucketPlace(Place):
    """Its checkpoint is on its own disk."""

    server: S3Server = field(kw_only=True)
    root: str = ROOT

    @classmethod
    def of(cls, folder: Path, servers: str, server: S3Server, root: str = ROOT) -> BucketPlace:
        """With the settings of a server in its configuration."""
        chosen = server.settings
        lines = [
            "[storage]",
            f'endpoint = "{chosen.endpoint}"',
            f'region = "{chosen.region}"',
            f'credentials_file = "{chosen.credentials_file}"',
            f"lease_seconds = {chosen.lease_seconds}",
        ]
        return cls(folder, servers, more="\n".join([*lines, ""]), server=server, root=root)

    @property
    def tables(self) -> Path:
        return cast("Path", self.root)  # all that is done with it is to print it
