"""The paths of a site and their handlers; the API and the page only where they are served."""

from __future__ import annotations

from tornado.web import Application

from laggard.exporter.api import API_PREFIX
from laggard.exporter.api_http import ApiHandler
from laggard.exporter.server import HANDLERS, Handler, Site
from laggard.exporter.ui.files import UI, UI_PREFIX
from laggard.exporter.ui.handler import UiHandler


def application(site: Site) -> Application:
    """Return the application that answers requests to a site."""
    shared = {"site": site}
    handlers = dict(HANDLERS)
    if site.api:
        handlers[f"{API_PREFIX}.*"] = ApiHandler
    if site.has_ui:
        handlers[UI] = handlers[f"{UI_PREFIX}.*"] = UiHandler
    return Application(
        [(path, handler, shared) for path, handler in handlers.items()],
        default_handler_class=Handler,
        default_handler_args=shared,
        log_function=lambda _: None,
        site=site,
    )
