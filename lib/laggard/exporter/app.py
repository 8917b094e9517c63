"""Requests for the JSON API and the page, and the application with the handlers of all paths.

Nothing here takes time: answers of the API come from its threads, files of the page are stored.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

from tornado.web import Application, Finish, HTTPError

from laggard.exporter.api import API_PREFIX, CODES, Answer, Busy, Late, Question, counted_path
from laggard.exporter.body.negotiate import wants_gzip
from laggard.exporter.server import HANDLERS, Handler, Site
from laggard.exporter.ui.files import UI, UI_PREFIX, ui_files

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; "
    # names can only become text
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_JSON = "application/json; charset=utf-8"
_PREFLIGHT_SECONDS = "600"


class ApiHandler(Handler):
    """Hand a question to the threads, and their answer to the client."""

    def initialize(self, site: Site) -> None:
        super().initialize(site)
        if site.api is not None and site.api.cors_origins:
            self.SUPPORTED_METHODS = (*Handler.SUPPORTED_METHODS, "OPTIONS")

    def is_preflight(self) -> bool:
        return self.request.method == "OPTIONS"

    def options(self) -> None:
        """Tell the browser in advance that a page may send a password or ask for changes."""
        self.set_status(204)
        self.clear_header("Content-Type")
        if "Access-Control-Allow-Origin" in self._headers:
            self.set_header("Access-Control-Allow-Methods", ", ".join(Handler.SUPPORTED_METHODS))
            self.set_header("Access-Control-Allow-Headers", "Authorization, If-None-Match")
            self.set_header("Access-Control-Max-Age", _PREFLIGHT_SECONDS)
        self.finish()

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Content-Type", _JSON)
        # may be kept by the client, who asks with If-None-Match if it still holds
        self.set_header("Cache-Control", "private, no-cache")
        api, origin = self.settings["site"].api, self.request.headers.get("Origin")
        vary = "Accept-Encoding, Origin" if api.cors_origins else "Accept-Encoding"
        self.set_header("Vary", vary)
        if origin and not api.cors_origins.isdisjoint((origin, "*")):
            allowed = "*" if "*" in api.cors_origins else origin
            self.set_header("Access-Control-Allow-Origin", allowed)
            self.set_header("Access-Control-Expose-Headers", "ETag")

    async def body(self) -> bytes:
        is_zipped = wants_gzip(",".join(self.request.headers.get_list("Accept-Encoding")))
        answer = await self._ask(is_zipped=is_zipped)
        self.set_status(answer.status)
        if answer.status == 200:
            self.set_header("Etag", answer.etag)
            if self.check_etag_header():
                self.set_status(304)
                raise Finish
        if is_zipped:
            self.set_header("Content-Encoding", "gzip")
        if is_zipped:
            return answer.zipped
        return answer.body

    async def _ask(self, *, is_zipped: bool) -> Answer:
        site, api = self.site, self.site.api
        if api is None:
            raise HTTPError(404)
        try:
            pairs = parse_qsl(
                self.request.query, keep_blank_values=True, max_num_fields=50, errors="strict"
            )
        except ValueError:
            raise HTTPError(400) from None
        question = Question(self.request.path, pairs, site.published().roots, site.clock())
        try:
            return await api.ask(question, is_zipped=is_zipped)
        except Busy:
            raise HTTPError(429) from None
        except Late:
            raise HTTPError(503) from None

    def error_text(self, status_code: int) -> str:
        self.set_header("Content-Type", _JSON)  # what failed may have cleared it
        error = {
            "code": CODES.get(status_code, "error"),
            "message": f"{status_code} {self._reason}",
            "choices": [],
        }
        return json.dumps({"error": error}) + "\n"

    def counted_path(self) -> str:
        return counted_path(self.request.path)


class UiHandler(Handler):
    """Answer with one file of the page."""

    def answer(self) -> bytes:
        if self.request.path == UI_PREFIX:  # the page asks for its files beside it
            self.set_status(308)
            self.set_header("Location", "../ui")
            raise Finish
        file = ui_files(self.site.runbook_base).get(self.request.path)
        if file is None:
            raise HTTPError(404)
        self.set_header("Content-Type", file.content_type)
        # kept, and asked for again with If-None-Match
        self.set_header("Cache-Control", "private, no-cache")
        self.set_header("Content-Security-Policy", _POLICY)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("Vary", "Accept-Encoding")
        self.set_header("Etag", file.etag)
        if self.check_etag_header():
            self.set_status(304)
            raise Finish
        if not wants_gzip(",".join(self.request.headers.get_list("Accept-Encoding"))):
            return file.plain
        self.set_header("Content-Encoding", "gzip")
        return file.zipped

    def counted_path(self) -> str:
        return UI


def application(site: Site) -> Application:
    """Return the application that answers requests to a site."""
    shared = {"site": site}
    handlers = dict(HANDLERS)
    if site.api:
        handlers[f"{API_PREFIX}.*"] = ApiHandler
        handlers[UI] = handlers[f"{UI_PREFIX}.*"] = UiHandler
    return Application(
        [(path, handler, shared) for path, handler in handlers.items()],
        default_handler_class=Handler,
        default_handler_args=shared,
        log_function=lambda _: None,
        site=site,
    )
