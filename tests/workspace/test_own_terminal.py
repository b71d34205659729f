"""A command beside the app gets a pane of tmux where both have room."""

from __future__ import annotations

import pytest

from workbench.tui.screens.too_small import SMALLEST
from workbench.workspace.own_terminal import SHARE, opens_unasked


@pytest.mark.parametrize("lines", range(10, 60))
def test_a_pane_opens_unasked_only_where_the_app_keeps_the_lines_that_it_needs(lines: int) -> None:
    left = lines - lines * SHARE // 100 - 1
    assert opens_unasked({"TMUX": "/tmp/tmux-0/default,1,0"}, lines) is (left >= SMALLEST.height)
    assert not opens_unasked({}, lines)
