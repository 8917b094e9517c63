"""Requests for the JSON API: headers, errors in one form, and nothing that takes time."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

from tornado.web import Finish, HTTPError

from laggard.exporter.api import CODES, Answer, Busy, Late, Question, counted_path
from laggard.exporter.body.negotiate import wants_gzip
from laggard.exporter.server import Handler, Site

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
        self.set_header(
            "Vary", "Accept-Encoding, Origin" if api.cors_origins else "Accept-Encoding"
        )
        if origin and not api.cors_origins.isdisjoint((origin, "*")):
            self.set_header(
                "Access-Control-Allow-Origin", "*" if "*" in api.cors_origins else origin
            )
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
        return answer.zipped if is_zipped else answer.body

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
