"""The keys of the snapshots screen, and of two requests side by side."""

from __future__ import annotations

from workbench.tui.key import Key

REVIEW_KEYS: tuple[Key, ...] = (
    Key(
        "app.snapshots",
        "T",
        "snapshots",
        "app",
        "The frozen runs of this workspace: check and review",
        "Workbench",
        "snapshots",
    ),
    Key(
        "request.next",
        "right_square_bracket",
        "difference(1)",
        "request",
        "The next difference of two requests",
        "Requests",
        "next",
    ),
    Key(
        "request.previous",
        "left_square_bracket",
        "difference(-1)",
        "request",
        "The difference before",
        "Requests",
        "previous",
    ),
    Key("request.edit", "o", "edit", "request", "Open the file at the line behind it", "Requests", "open file"),
    Key(
        "changed.live", "c", "live", "changed", "Go live from here: make this call and all after it", "Requests", "live"
    ),
    Key("changed.stop", "x", "stop", "changed", "Stop the run here; nothing was called", "Requests", "stop"),
    Key(
        "snapshots.accept",
        "a",
        "decide('accepted')",
        "snapshots",
        "Accept: what happens now is the new expectation",
        "Snapshots",
        "accept",
    ),
    Key(
        "snapshots.reject",
        "r",
        "decide('rejected')",
        "snapshots",
        "Reject: the snapshot is right, the cascade is not",
        "Snapshots",
        "reject",
    ),
    Key("snapshots.skip", "s", "decide('skipped')", "snapshots", "Skip: decide later", "Snapshots", "skip"),
    Key(
        "snapshots.accept_all",
        "A",
        "decide_all('accepted')",
        "snapshots",
        "Accept all that are open",
        "Snapshots",
        "all",
    ),
    Key("snapshots.reject_all", "R", "decide_all('rejected')", "snapshots", "Reject all that are open", "Snapshots"),
    Key("snapshots.skip_all", "S", "decide_all('skipped')", "snapshots", "Skip all that are open", "Snapshots"),
    Key("snapshots.full", "d", "full", "snapshots", "Both requests in full, side by side", "Snapshots", "full text"),
    Key("snapshots.edit", "o", "edit", "snapshots", "Open the cascade file at the line", "Snapshots", "open file"),
    Key("snapshots.next", "n", "next", "snapshots", "The next snapshot to decide about", "Snapshots", "next"),
    Key("snapshots.check", "c", "check", "snapshots", "Check all snapshots again", "Snapshots", "check"),
    Key("snapshots.stop", "x", "stop", "snapshots", "Stop the check", "Snapshots", "stop"),
    Key("snapshots.copy", "y", "copy", "snapshots", "Copy the review", "Snapshots"),
    Key("snapshots.pane", "tab", "pane(1)", "snapshots", "Go to the next pane", "Snapshots"),
    Key("snapshots.pane_back", "shift+tab", "pane(-1)", "snapshots", "Go to the pane before", "Snapshots"),
    Key(
        "snapshots.close",
        "escape,q",
        "close",
        "snapshots",
        "Drop a filter or a search; else back to the Bench",
        "Snapshots",
        "back",
    ),
)

REVIEW_CONTEXTS: dict[str, tuple[str, ...]] = {
    "request": ("list", "sheet", "changed"),
    "changed": ("list", "sheet", "request"),
    "snapshots": ("list",),
}
