"""Ask the exporter on this machine, for a probe: does it answer, and has it metrics."""

from __future__ import annotations

import http.client
import ssl
from ipaddress import ip_address
from pathlib import Path

ASK_SECONDS = 4.0
_REFUSALS = (401, 403, 429)  # it answers; a probe has no password


def asks_for_tls(web_config_file: str) -> bool:
    """Return True if the web-config file may ask for TLS.

    Waiting for a handshake that never comes takes seconds.
    """
    if not web_config_file:
        return False
    try:
        return "tls_server_config" in Path(web_config_file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return True


def check(listen: str, *, ready: bool, tls_first: bool) -> tuple[bool, str]:
    """Return True if the exporter at `listen` is live, or ready, and the reason in one line.

    A socket that only opens or closes is no life: that takes an HTTP answer, or a TLS handshake
    that it ends, or after which it closes, for want of a client certificate. Its own certificate
    names another host than the loopback address.
    """
    host, _, port = listen.rpartition(":")
    host = _reachable(host.strip("[]"))
    path, good = ("/-/ready", (200,)) if ready else ("/-/healthy", (200, *_REFUSALS))
    said: list[str] = []
    for way in ("TLS", "HTTP") if tls_first else ("HTTP",):
        connection, is_connected = _connection(host, int(port), is_tls=way == "TLS"), False
        try:
            connection.connect()
            is_connected = True
            code, text = _ask(connection, path)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            # TLS 1.2 asks for a certificate within the handshake, a later one after it
            if way == "TLS" and (is_connected or "ALERT" in str(getattr(error, "reason", ""))):
                return not ready, f"it speaks TLS and wants a client certificate: {reason}"
            said.append(f"{way}: {reason}")
        else:
            return code in good, f"it answers {code}: {text}"
        finally:
            connection.close()
    return False, f"no answer from {host}:{port}: {'; '.join(said)}"


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


def _reachable(host: str) -> str:
    """Return the address to connect to, a loopback address if the exporter listens on all."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"
