"""laggard config: settings in force with their origin, validity, available settings, policies."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from laggard.cli.text.envelope import json_answer
from laggard.conf import conf_file
from laggard.config import Config, load_config
from laggard.config.sections import keys, value_of
from laggard.errors import OK, USAGE, LaggardError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "config",
        help="show, check, sample, policy",
        description="Show what is in force, check it, print a sample, or say what is declared "
        "about a group.",
    )
    actions = {
        "show": "every key with its value and where it came from",
        "check": "only say whether it is right",
        "sample": "print the commented reference file",
        "policy": "what the rules of [[policy]] say about GROUP",
    }
    sentences = "; ".join(f"{name}: {sentence}" for name, sentence in actions.items())
    parser.add_argument("action", choices=tuple(actions), help=sentences)
    parser.add_argument(
        "group", nargs="?", metavar="GROUP", help="with policy: the group, of cluster.name"
    )


def run(args: argparse.Namespace, _: Config) -> int:
    """Load the configuration itself, since `sample` helps most when it cannot be loaded."""
    if (args.action == "policy") != (args.group is not None):
        raise LaggardError(
            "only the action policy takes a group",
            fix="laggard config policy GROUP",
            exit_code=USAGE,
        )
    if args.action == "sample":
        sample = conf_file("reference.toml").read_text(encoding="utf-8")
        print(json_answer({"toml": sample}) if args.json else sample.rstrip("\n"))
        return OK
    config = load_config(args.config, args.set, os.environ)
    if args.action == "show":
        _show(config, is_json=args.json)
    elif args.action == "policy":
        _policy(config, args.group, datetime.now(timezone.utc), is_json=args.json)
    else:
        _check(config, is_json=args.json)
    return OK


def _show(config: Config, *, is_json: bool) -> None:
    rows = {key: {"value": value_of(config, key), "origin": config.origins[key]} for key in keys()}
    if is_json:
        print(json_answer(rows))
        return
    assignments = {key: f"{key} = {_toml(row['value'])}" for key, row in rows.items()}
    width = max(map(len, assignments.values()))
    for key, row in rows.items():
        print(f"{assignments[key]:<{min(width, 60)}}  # {row['origin']}")


def _check(config: Config, *, is_json: bool) -> None:
    needed = (
        []
        if config.cluster.bootstrap_servers
        else ["cluster.bootstrap_servers is empty: laggard run needs at least one"]
    )
    if is_json:
        print(json_answer({"missing": needed}))
        return
    for sentence in needed:
        print(f"laggard: {sentence}", file=sys.stderr)
    print("laggard: the configuration is right")


def _policy(config: Config, group: str, now: datetime, *, is_json: bool) -> None:
    """Print the rules that match a group, and the resulting policy.

    Each key of the policy is shown with the rule that sets it.
    """
    cluster = config.cluster.name
    rules = config.policies.matching(cluster, group)
    origins = {name: rule.place for rule in rules for name in rule.values}
    values = asdict(config.policies.of(cluster, group, now))
    rows = {
        name: {"value": value, "origin": origins.get(name, "default")}
        for name, value in values.items()
    }
    rows["in_maintenance"]["origin"] = "now"
    if is_json:
        print(json_answer({"cluster": cluster, "group": group, "rules": rules, "policy": rows}))
        return
    for rule in rules:
        print(f"# {rule.place}: match = {_toml(rule.match)}, cluster = {_toml(rule.cluster)}")
    if not rules:
        print(f"# none of {len(config.policies.rules)} rules matches")
    for name, row in rows.items():
        assignment = f"{name} = {_toml(row['value'])}"
        print(f"{assignment:<40}  # {row['origin']}")


def _toml(value: Any) -> str:
    """Return the value as TOML text for the configuration file."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(name)} = {json.dumps(entry)}" for name, entry in value.items()
            )
            + "}"
        )
    return json.dumps(value, ensure_ascii=False)
