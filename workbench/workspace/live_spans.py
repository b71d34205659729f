"""The only sender of spans in this process, if the standard variables of OpenTelemetry name an endpoint."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from workbench.context.place import Place
from workbench.engine.contracts import Notice
from workbench.engine.journal.event import Event
from workbench.exporters.live_otel import SpanSender, endpoint_of
from workbench.workspace.recorded_runs import StoredImages

if TYPE_CHECKING:
    from workbench.store.store import Store

FLUSH_SECONDS = 5.0
"""For which the end of a program waits, at most, for spans that are on their way."""

_senders: dict[frozenset[tuple[str, str]], SpanSender] = {}
"""By the variables that it was made with."""


def live_spans(
    env: Mapping[str, str], store: Store, notify: Callable[[Notice], None]
) -> Callable[[Event], None] | None:
    """Takes each event of a run, and of its child runs, after it was journaled; None if no endpoint is set."""
    if not endpoint_of(env):
        return None
    key = frozenset((name, value) for name, value in env.items() if name.startswith("OTEL_"))
    sender = _senders.get(key)
    if sender is None:
        sender = _senders[key] = SpanSender(env)

    def say(text: str) -> None:
        notify(Notice("spans", Place(), {"message": text}))

    def take(event: Event) -> None:
        run_id = event.run_id
        sender.take(event, StoredImages(store, run_id), lambda: store.events(run_id), say)

    return take


def finish_spans() -> None:
    """Wait until all spans are sent, at most ``FLUSH_SECONDS``, and send no more; returns at once if none are sent."""
    while _senders:
        _senders.popitem()[1].close(FLUSH_SECONDS)


atexit.register(finish_spans)
