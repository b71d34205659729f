"""The page of a comparison shows the images that messages bring, small, and each of them once."""

from __future__ import annotations

from tests.engine.support import FlatPrices, Words, call, play
from tests.ui.test_picture import claiming, png
from workbench.analysis.compare import Comparison, compare, under
from workbench.context.strategy import parse
from workbench.engine.contracts import ToolImage, ToolResult
from workbench.views.compare import comparison_html
from workbench.views.page import SIDES

WIDE = png(2400, 80)
DOCUMENT = {
    "cascade_id": "c",
    "phases": [{"name": "look", "instructions": "Look.", "tackle": ["draw"], "rules": {"max_turns": 4}}],
}


def drawn() -> tuple[Comparison, dict[str, bytes]]:
    def draw(x: str = "") -> ToolResult:
        return ToolResult("drawn " * 50, images=(ToolImage(WIDE, "image/png", 2400, 80),))

    run = play(DOCUMENT, [call("draw"), call("draw"), call("draw"), "Nice."], tools={"draw": draw})
    sides = [
        under(spec, run.state, run.definition, parse(spec), Words(), FlatPrices())
        for spec in ("snowball", "mask(after=1)")
    ]
    return compare(*sides), run.blobs


def test_an_image_stands_on_the_page_once_and_small() -> None:
    comparison, blobs = drawn()
    text = comparison_html(comparison, "t", blobs)
    assert text.count("data:image/jpeg;base64,") == 1
    assert f".i0 {{ width: {SIDES[0]}px; height: 8px;" in text
    assert text.count('class="image i0" role="img"') > 1
    assert "img-src data:" in text
    assert len(text) < len(comparison_html(comparison, "t", {})) + 20_000


def test_an_image_that_is_gone_or_cannot_be_drawn_is_named_only() -> None:
    comparison, blobs = drawn()
    for images in ({}, dict.fromkeys(blobs, claiming(65_000, 65_000)), dict.fromkeys(blobs, b"<script>")):
        text = comparison_html(comparison, "t", images)
        assert "base64" not in text
        assert "image/png" in text
