"""OPTIMIZE, retention and VACUUM of the tables, once; refused while the job itself holds the writer lock."""

import argparse
import os
import sys
from datetime import datetime, timezone

from laggard.cli.logs import start_log
from laggard.config import load_config
from laggard.errors import DAMAGED, LaggardError


def main() -> int:
    """Maintain the tables of one configuration; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", metavar="FILE", help="configuration, as for laggard run")
    parser.add_argument("--set", metavar="A.B=C", action="append", default=[], help="one key")
    args = parser.parse_args()
    start_log("info", is_json=False)
    try:
        config = load_config(args.config, args.set, os.environ)
        from laggard import storage
        from laggard.tables.lock import writer_lock
        from laggard.tables.maintenance import Retention, maintain

        storage.use(config.storage)
        storage.check_keys()
        with writer_lock(config.job.tables):
            retention, now = Retention.from_config(config), datetime.now(timezone.utc)
            outcomes = maintain(config.job.tables, retention, now, optimize=config.maintenance.optimize)
        failed = [f"{each.table}: {each.error}" for each in outcomes if each.error]
        if failed:
            raise LaggardError(
                f"{len(failed)} of {len(outcomes)} tables are not maintained",
                cause="; ".join(failed),
                fix="laggard doctor names what is damaged; then maintain again",
                exit_code=DAMAGED,
            )
    except LaggardError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
