"""Compaction, retention and VACUUM of the tables, once.

By spark-submit, the executors write the compacted files.

On a disk it is refused while the job holds the writer lock. In a bucket it may run beside the job,
and there `maintenance.enabled = false` leaves all of it but the status tables to this one
(docs/storage.md).
"""

import argparse
import os
import sys
from contextlib import ExitStack
from datetime import datetime, timezone

from laggard.cli.logs import start_log
from laggard.config import Config, load_config
from laggard.errors import DAMAGED, LaggardError


def main() -> int:
    """Maintain the tables of one configuration; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", metavar="FILE", help="configuration, as for laggard run")
    parser.add_argument("--set", metavar="A.B=C", action="append", default=[], help="one key")
    args = parser.parse_args()
    start_log("info", is_json=False)
    try:
        run(load_config(args.config, args.set, os.environ))
    except LaggardError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def run(config: Config) -> None:
    """Maintain every table; raises if one of them is not maintained."""
    from laggard import storage
    from laggard.stream.job.session import is_submitted, start_session
    from laggard.tables.lock import local_path, writer_lock
    from laggard.tables.upkeep.compaction import carry_out_here, carry_out_on
    from laggard.tables.upkeep.maintenance import Retention, maintain

    storage.use(config.storage)
    storage.check_keys()
    root, now, carry_out = config.job.tables, datetime.now(timezone.utc), carry_out_here
    with ExitStack() as until_then:
        if local_path(root) is not None:
            until_then.enter_context(writer_lock(root))
        if is_submitted():
            spark = start_session(config.job.master, config.job.spark)
            until_then.callback(spark.stop)
            carry_out = carry_out_on(spark.sparkContext)
        outcomes = maintain(
            root,
            Retention.of(config.retention),
            now,
            carry_out=carry_out,
        )
    failed = [f"{each.table}: {each.error}" for each in outcomes if each.error]
    if failed:
        raise LaggardError(
            f"{len(failed)} of {len(outcomes)} tables are not maintained",
            cause="; ".join(failed),
            fix="laggard doctor names what is damaged; then maintain again",
            exit_code=DAMAGED,
        )


if __name__ == "__main__":
    sys.exit(main())
