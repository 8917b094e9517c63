"""The newest entries of a table's Delta log, read without loading the table.

The cost does not grow with the log.

Delta protocol: entry `n` is `_delta_log/<n in 20 digits>.json`, one action a line; entries have no
holes, and `_last_checkpoint` names a recent one.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from laggard import files


def newest_version(uri: str) -> int:
    """Return the newest entry's version by about a dozen file look-ups.

    Raise OSError or ValueError if it is not clear.
    """
    system, folder = files.open_uri(f"{uri}/_delta_log")

    def is_there(version: int) -> bool:
        return bool(system.get_file_info(_entry(folder, version)).type == fs.FileType.File)

    pointer = f"{folder}/_last_checkpoint"
    known = 0
    if system.get_file_info(pointer).type != fs.FileType.NotFound:
        with system.open_input_stream(pointer) as stream:
            known = int(json.loads(stream.read())["version"])
    if not is_there(known):
        raise ValueError(f"{uri} has no entry {known} in its log")
    step = 1
    while is_there(known + step):
        known, step = known + step, 2 * step
    while step > 1:  # entry `known` is there, `known + step` is not
        step //= 2
        known += step * is_there(known + step)
    return known


def read_added(uri: str, version: int) -> dict[str, dict[str, str]]:
    """Return paths of the files that an entry added, with partition values.

    It is empty if the entry also removed some.
    """
    actions = _read_entry(uri, version)
    if any("remove" in action for action in actions):
        return {}
    added = {}
    for action in actions:
        add = action.get("add")
        if add and add["dataChange"]:
            added[f"{uri}/{unquote(add['path'])}"] = add["partitionValues"]
    return added


def adds_rows(uri: str, version: int) -> bool:
    """Return True if an entry added rows; maintenance writes entries too.

    Not by `DeltaTable.history`, which is empty below a folder with # or ? in its name.
    """
    actions = _read_entry(uri, version)
    return any(action["add"]["dataChange"] for action in actions if "add" in action)


def _read_entry(uri: str, version: int) -> list[dict[str, Any]]:
    system, folder = files.open_uri(f"{uri}/_delta_log")
    with system.open_input_stream(_entry(folder, version)) as stream:
        return [json.loads(line) for line in bytes(stream.read()).splitlines() if line]


def _entry(folder: str, version: int) -> str:
    return f"{folder}/{version:020}.json"
