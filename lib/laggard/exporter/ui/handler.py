"""Requests for the page: stored bytes, with a policy that confines the browser to this origin."""

from __future__ import annotations

from tornado.web import Finish, HTTPError

from laggard.exporter.body.negotiate import wants_gzip
from laggard.exporter.server import Handler
from laggard.exporter.ui.files import UI, UI_PREFIX, ui_files

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; "
    # names can only become text
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


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
