"""Times of day are those of UTC in every test."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from workbench.tui.rows.numbers import clock


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    clock.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    clock.cache_clear()
