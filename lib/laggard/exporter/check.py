"""Ask the exporter on this machine, for a probe: does it answer, and has it metrics."""

from __future__ import annotations

import http.client
import ssl
from ipaddress import ip_address
from pathlib import Path

ASK_SECONDS = 4.0
_REFUSALS = (401, 403, 429)  # it answers; a probe has no password


def asks_for_tls(web_config_file: str) -> bool:
    """True if the web-config file may have a part for TLS; the wait for a handshake that never comes takes seconds."""
    if not web_config_file:
        return False
    try:
        return "tls_server_config" in Path(web_config_file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True


def check(listen: str, *, ready: bool, tls_first: bool) -> tuple[bool, str]:
    """True if the exporter at `listen` lives, or is ready; and why, in one line.

    A socket that only opens or closes is no life: that takes an HTTP answer, or a TLS handshake that it ends, or after
    which it closes, for want of a client certificate. Its own certificate names another host than the loopback address.
    """
    host, _, port = listen.rpartition(":")
    host = reachable(host.strip("[]"))
    said: list[str] = []
    for is_tls in (True, False) if tls_first else (False,):
        connection = _connection(host, int(port), is_tls=is_tls)
        try:
            connection.connect()
        except OSError as error:
            if is_tls and "ALERT" in str(getattr(error, "reason", "")):  # TLS 1.2 asks within the handshake
                return not ready, f"it speaks TLS and wants a client certificate: {_said(error)}"
            said.append(f"{'TLS' if is_tls else 'HTTP'}: {_said(error)}")
            continue
        try:
            code, text = _ask(connection, "/-/ready" if ready else "/-/healthy")
        except (OSError, http.client.HTTPException) as error:
            if is_tls:
                return not ready, f"it speaks TLS and wants a client certificate: {_said(error)}"
            said.append(f"HTTP: {_said(error)}")
        else:
            return code == 200 or (code in _REFUSALS and not ready), f"it answers {code}: {text}"
        finally:
            connection.close()
    return False, f"no answer from {host}:{port}: {'; '.join(said)}"


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _connection(host: str, port: int, *, is_tls: bool) -> http.client.HTTPConnection:
    if not is_tls:
        return http.client.HTTPConnection(host, port, timeout=ASK_SECONDS)
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - see check
    return http.client.HTTPSConnection(host, port, timeout=ASK_SECONDS, context=context)


def _ask(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = " ".join(answer.read(200).decode("utf-8", "replace").split())
    return answer.status, text.encode("ascii", "backslashreplace").decode()


def reachable(host: str) -> str:
    """The address to ask when it listens on all of them."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"
