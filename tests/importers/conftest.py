"""What a test of this folder reads is compared as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import is_hypothesis_test

from tests.importers import whole


@pytest.fixture(autouse=True)
def all_that_is_read(request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold what the test reads by ``tests.importers.whole`` against what is stored."""
    whole.given.clear()
    yield
    if whole.given and not is_hypothesis_test(request.function):
        whole.compared(request.path.stem, request.node.name)
