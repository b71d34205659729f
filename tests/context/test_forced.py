"""Which requests make a model call a tool, in the words of each provider."""

from __future__ import annotations

import pytest

from workbench.context.assembler import is_forced


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        ("required", True),
        ({"type": "any"}, True),
        ({"type": "function", "function": {"name": "f"}}, True),
        ({"any": {}}, True),
        ({"tool": {"name": "f"}}, True),
        ({"auto": {}}, False),
        ({"type": "auto"}, False),
        ("auto", False),
        (None, False),
    ],
)
def test_a_choice_forces_a_call(choice: object, forced: bool) -> None:
    assert is_forced(choice) is forced
