"""Times of day are those of UTC in every test, and a test answers at once what opens by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from workbench.tui import early_keys
from workbench.views.numbers import clock, day_and_time


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    clock.cache_clear()
    day_and_time.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    clock.cache_clear()
    day_and_time.cache_clear()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test needs no time to see what opens by itself."""
    monkeypatch.setattr(early_keys, "REACTION", 0.0)
