"""Asking a running exporter, for the verbs with `--url`."""

from __future__ import annotations

import argparse
import base64
import http.client
import ssl
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from laggard.answers.document import decode
from laggard.answers.text.words import listed
from laggard.config.ranges import is_url
from laggard.errors import (
    CONFIGURATION,
    DENIED,
    NOT_FOUND,
    TEMPORARY,
    UNREACHABLE,
    USAGE,
    LaggardError,
    first_line,
)
from laggard.escape import printable_lines
from laggard.secret_files import read_password

Document = dict[str, Any]
ASK_SECONDS = 30.0
_MAX_BYTES = 256 * 1024 * 1024
_MAX_PAGE = 5000
TRIES = 3
FORM_ERRORS = (LookupError, TypeError, ValueError, AttributeError)
_EXITS = {400: USAGE, 401: DENIED, 403: DENIED, 404: NOT_FOUND, 429: TEMPORARY, 503: TEMPORARY}
_FIXES = {
    401: "--user NAME --password-file FILE",
    429: "try again later",
    503: "try again later; laggard doctor",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name an exporter to read from, and what it asks for."""
    group = parser.add_argument_group("from a running exporter, in place of the tables")
    group.add_argument("--cluster", metavar="NAME", help="cluster, if it serves several")
    add_address(group)


def add_address(group: argparse._ArgumentGroup) -> None:
    """Add the options that are about the exporter's address, TLS and password."""
    group.add_argument(
        "--url", type=_url, metavar="URL", help="the exporter, as http://localhost:8917"
    )
    group.add_argument(
        "--ca-file",
        metavar="FILE",
        help="certificates that sign the server's (default: the system's)",
    )
    group.add_argument("--cert-file", metavar="FILE", help="certificate of the client")
    group.add_argument("--key-file", metavar="FILE", help="its key (default: in the same file)")
    group.add_argument("--user", metavar="NAME", help="user of the exporter's web-config file")
    group.add_argument(
        "--password-file", metavar="FILE", help="the user's password; nobody else may read the file"
    )


class Remote:
    """The exporter at a URL."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._parts = urlsplit(args.url)
        self._url = args.url
        self._cluster = getattr(args, "cluster", None)  # the doctor asks for no data of one
        self._context = _context(args) if self._parts.scheme == "https" else None
        self._headers = {"Accept": "application/json"}
        if (args.user is None) != (args.password_file is None):
            raise LaggardError(
                "a user and a password belong together",
                cause="only one of --user and --password-file is given",
                fix="give both, or none",
                exit_code=USAGE,
            )
        if args.user is not None:
            pair = f"{args.user}:{read_password(args.password_file, '--password-file')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    def get(self, path: str, **parameters: object) -> Document:
        """Ask one question; what is None is left out."""
        given = {"cluster": self._cluster} | parameters
        query = urlencode({name: value for name, value in given.items() if value is not None})
        where = f"/api/v1/{path}" + (f"?{query}" if query else "")
        status, body = self.ask(where)
        try:
            document = decode(body)
            if status == 200 and document["api"] == "v1":
                return document
            error = document["error"]
            said, choices = str(error["message"]), [*map(str, error["choices"])]
        except FORM_ERRORS:
            raise _no_exporter(self._url, f"it answers {status} in another form") from None
        raise LaggardError(
            printable_lines(f"{self._url}: {said}"),
            cause=f"it answers {status} {error['code']}"
            + (f"; possible: {listed(choices)}" if choices else ""),
            fix=_FIXES.get(status, f"laggard status --url {self._url}"),
            exit_code=_EXITS.get(status, UNREACHABLE),
        )

    def whole(self, path: str, **parameters: object) -> Document:
        """Ask for a list, page after page of one batch, and return it as one document.

        If the exporter serves several clusters, one has to be named.
        """
        with self.reading():
            for _ in range(TRIES):
                pages = list(self._pages(path, parameters))
                if len({page["batch_id"] for page in pages}) == 1:
                    rows = [row for page in pages for row in page[path]]
                    return pages[0] | {path: rows, "next": None}
        raise self.moved_on()

    def moved_on(self) -> LaggardError:
        """Return the error for answers that are of several batches each time."""
        return LaggardError(
            f"{self._url}: the batch changes faster than its pages are read",
            cause=f"{TRIES} times a page was of another batch than the one before",
            fix=_FIXES[503],
            exit_code=TEMPORARY,
        )

    def reading(self) -> AbstractContextManager[None]:
        """Raise if an answer lacks a key: then it is not an answer of laggard."""
        return reading(self._url)

    def _pages(self, path: str, parameters: Mapping[str, object]) -> Iterator[Document]:
        after = None
        while True:
            page = self.get(path, **parameters, limit=_MAX_PAGE, after=after)
            if len(page["clusters"]) > 1:
                names = [cluster["cluster"] for cluster in page["clusters"]]
                raise LaggardError(
                    f"{self._url} serves several clusters",
                    cause=listed(names),
                    fix=f"--cluster {names[0]}",
                    exit_code=USAGE,
                )
            yield page
            after = page["next"]
            if after is None:
                return

    def ask(self, path: str) -> tuple[int, bytes]:
        """Ask for any path of the exporter; gives status and body."""
        where = self._parts.path.rstrip("/") + path
        host, port = self._parts.hostname or "", self._parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=ASK_SECONDS, context=self._context)
            if self._context
            else http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
        )
        try:
            connection.request("GET", where, headers=self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_MAX_BYTES)
        except ssl.SSLCertVerificationError as error:
            raise self._unreachable(
                error, "--ca-file with the certificates that sign its own"
            ) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._unreachable(
                error, "laggard export  # is it running, and is this its address?"
            ) from error
        finally:
            connection.close()

    def _unreachable(self, error: Exception, fix: str) -> LaggardError:
        cause = f"{type(error).__name__}: {first_line(error)}"
        return LaggardError(
            f"cannot ask {self._url}", cause=printable_lines(cause), fix=fix, exit_code=UNREACHABLE
        )


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Raise if the answer of an address lacks a key: then it is not an answer of laggard."""
    try:
        yield
    except FORM_ERRORS as error:
        cause = f"its answer is incomplete: {type(error).__name__}: {error}"
        raise _no_exporter(url, cause) from error


def _no_exporter(url: str, cause: str) -> LaggardError:
    return LaggardError(
        f"{url} has no API of laggard",
        cause=printable_lines(cause),
        fix="look at the address, and at exporter.api of that exporter",
        exit_code=UNREACHABLE,
    )


def in_path(name: str) -> str:
    """Write a group's name as a path has it."""
    return quote(name.encode("utf-8", "surrogatepass"), safe="")


def _context(args: argparse.Namespace) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=args.ca_file)
        if args.cert_file:
            context.load_cert_chain(args.cert_file, args.key_file)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(filter(None, (args.ca_file, args.cert_file, args.key_file)))
        raise LaggardError(
            "the TLS files cannot be used",
            cause=f"{names}: {first_line(error)}",
            fix="name PEM files that this user may read",
            exit_code=CONFIGURATION,
        ) from error
    return context


def _url(text: str) -> str:
    if not is_url(text) or "?" in text:
        raise argparse.ArgumentTypeError(
            f"expected http://host:port or https://host:port, got {text!r}"
        )
    return text.rstrip("/")
