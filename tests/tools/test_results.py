"""What a tool returns, as the result that a model sees."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.test_images import png
from workbench.engine.contracts import ToolResult
from workbench.tools.paths import Workspace
from workbench.tools.results import MAX_CHARS, bounded, error_of, result_of


@pytest.mark.parametrize(
    ("value", "text", "kept"),
    [
        ("plain", "plain", None),
        (None, "(no output)", None),
        ("  \n", "(no output)", None),
        (3, "3", 3),
        ({"a": ["ü", None]}, '{\n  "a": [\n    "ü",\n    null\n  ]\n}', {"a": ["ü", None]}),
    ],
)
def test_text_stays_and_everything_else_becomes_json(workspace: Workspace, value: Any, text: str, kept: Any) -> None:
    assert result_of(value, workspace) == ToolResult(text, value=kept)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), {"x": b"y"}])
def test_what_json_has_no_word_for_is_an_error(workspace: Workspace, value: Any) -> None:
    result = result_of(value, workspace)
    assert result.is_error
    assert result.text.startswith("TypeError: ")


def test_images_are_read_and_those_that_cannot_be_are_named(root: Path, workspace: Workspace) -> None:
    (root / "plot.png").write_bytes(png(4, 3))
    value = {"content": {"points": 2}, "images": ["plot.png", root / "plot.png", "/etc/passwd", "notes.txt"]}
    result = result_of(value, workspace)
    assert not result.is_error
    assert [(i.media_type, i.width, i.path) for i in result.images] == [("image/png", 4, "plot.png")] * 2
    assert result.value == {"points": 2}
    assert result.text.splitlines()[-2:] == [
        "[image left out: '/etc/passwd' lies outside the workspace]",
        "[image left out: 'notes.txt' is not a PNG, JPEG, GIF or WebP image]",
    ]


def test_data_urls_of_images_become_images(workspace: Workspace) -> None:
    url = f"data:image/png;base64,{base64.b64encode(png(4, 3)).decode()}"
    for value, text in (
        (f"see {url} and {url}", "see [image 1] and [image 1]"),
        ({"p": url}, '{\n  "p": "[image 1]"\n}'),
    ):
        result = result_of(value, workspace)
        assert result.text == text
        assert [(i.data, i.media_type, i.width) for i in result.images] == [(png(4, 3), "image/png", 4)]


def test_what_a_command_or_a_document_holds_of_images_becomes_images(root: Path, workspace: Workspace) -> None:
    """Ready results too: those of commands, and those with images beside, which are counted first."""
    first, second = (f"data:image/png;base64,{base64.b64encode(png(w, 3)).decode()}" for w in (4, 5))
    (root / "plot.png").write_bytes(png(4, 3))
    beside = result_of({"content": f"see {first} and {second}", "images": ["plot.png"]}, workspace)
    assert (beside.text, [one.width for one in beside.images]) == ("see [image 1] and [image 2]", [4, 5])
    long = f"{'x' * 40} {second} {'y' * 40}"
    printed = result_of(ToolResult(bounded(long, 90), sandbox="bwrap", whole=long), workspace)
    assert (printed.text, printed.whole) == (f"{'x' * 40} [image 1] {'y' * 40}", "")
    assert ([one.width for one in printed.images], printed.sandbox) == ([5], "bwrap")
    none = ToolResult("data:image/png;base64,AAAA")
    assert result_of(none, workspace) is none


def test_images_without_text_still_have_a_text(root: Path, workspace: Workspace) -> None:
    (root / "plot.png").write_bytes(png(4, 3))
    assert result_of({"images": ["plot.png"]}, workspace).text == "1 image(s)"


def test_an_exception_is_its_type_and_message(workspace: Workspace) -> None:
    assert error_of(ValueError("no such city")) == ToolResult("ValueError: no such city", is_error=True)
    assert error_of(KeyError()).text == "KeyError"


def test_a_text_that_fits_to_the_last_character_is_whole() -> None:
    assert bounded("x" * 10, 10) == "x" * 10
    assert bounded("x" * 11, 10) == "xxxxx\n[… 1 characters left out …]\nxxxxx"


@given(st.text(max_size=300), st.integers(10, 100))
def test_a_cut_keeps_head_and_tail_and_says_how_much_is_gone(text: str, limit: int) -> None:
    cut = bounded(text, limit)
    if len(text) <= limit:
        assert cut == text
    else:
        assert cut.startswith(text[: limit // 2])
        assert cut.endswith(text[-(limit // 2) :])
        assert f"{len(text) - 2 * (limit // 2):,} characters left out" in cut


def test_a_huge_result_is_bounded(workspace: Workspace) -> None:
    assert len(result_of("x" * (3 * MAX_CHARS), workspace).text) < MAX_CHARS + 100
