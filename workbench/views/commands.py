"""What commands are called in the palette and in the help, and words that find them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from workbench.views.keys import Key, display

_NAMES: dict[str, tuple[str, str]] = {
    # Run
    "run.over": ("Step", "step over next call turn debugger"),
    "run.into": ("Step into", "tool child nested debugger"),
    "run.out": ("Step out, or back to the caller", "phase end nested debugger"),
    "run.step_out": ("Step out", "phase end debugger"),
    "run.continue": ("Continue", "resume go on retry debugger"),
    "run.pause": ("Pause or continue", "hold stop wait"),
    "run.start": ("Start run", "new begin execute"),
    "run.stop": ("Stop run", "cancel abort kill interrupt"),
    "run.answer": ("Answer question", "human form approval sign off"),
    "run.breakpoint": ("Toggle breakpoint", "stop break debugger"),
    "run.condition": ("Set conditional breakpoint", "stop break tool tokens state"),
    "run.breakpoints": ("List breakpoints", "edit disable delete condition"),
    "run.again": ("Re-run", "reuse recorded answers file changed again"),
    "run.edit": ("Edit message", "request tool call arguments result state parameters model pause"),
    "run.feedback": ("Send feedback to the phase", "say audible steer"),
    "run.fork": ("Fork run", "branch what if from here"),
    "run.freeze": ("Freeze as test", "snapshot regression golden"),
    "run.playground": ("Playground", "try request models samples side by side"),
    # Look
    "found.next": ("Next match", "search find"),
    "found.previous": ("Previous match", "search find"),
    "view.previous": ("Previous call", "earlier turn back"),
    "view.next": ("Next call", "later turn follow"),
    "view.why": ("Explain entry", "why reason rule mask masked dropped"),
    "view.wire": ("Show request on the wire", "json raw payload http body"),
    "view.diff": ("Mark differences to the call before", "diff changed compare"),
    "view.strategies": ("Compare strategies", "mask what if context other run diff"),
    "view.candidates": ("Show candidates", "soundings winner evaluator"),
    "view.full": ("Toggle full or as sent", "mask masked truncated message"),
    "view.dropped": ("Toggle dropped messages", "mask unfold hidden"),
    "view.find": ("Find in pane", "search text"),
    "view.again": ("Find next", "search again"),
    "view.before": ("Find previous", "search again"),
    "view.filter": ("Filter rows", "search only"),
    "view.clear": ("Clear filter or search", "escape reset"),
    "view.copy": ("Copy row or message", "clipboard yank"),
    "view.edit": ("Edit file", "cascade yaml editor"),
    "view.external": ("Edit file in $EDITOR", "open vim emacs code"),
    # Panes and tabs
    "pane.next": ("Next pane", "focus"),
    "pane.previous": ("Previous pane", "focus"),
    "pane.zoom": ("Zoom pane", "full screen maximize"),
    "pane.narrower": ("Narrow the tree", "resize border"),
    "pane.wider": ("Widen the tree", "resize border"),
    "pane.higher": ("Raise the lower pane", "resize border"),
    "pane.lower": ("Shrink the lower pane", "resize border"),
    "pane.jump": ("Jump to pane", "focus letter"),
    "tabs.next": ("Next tab", "run buffer switch"),
    "tabs.previous": ("Previous tab", "run buffer switch"),
    "tabs.close": ("Close tab", "run buffer"),
    "tab.log": ("Show log", "what happened"),
    "tab.problems": ("Show problems", "errors warnings checks"),
    "tab.state": ("Show state", "variables values"),
    "tab.output": ("Show output", "result answer"),
    "tab.events": ("Show events", "journal"),
    "tab.timeline": ("Show timeline", "waterfall bars time"),
    # Lists and sheets
    "list.down": ("Down", "row move"),
    "list.up": ("Up", "row move"),
    "list.page_down": ("Page down", "scroll"),
    "list.page_up": ("Page up", "scroll"),
    "list.first": ("First row", "top home"),
    "list.last": ("Last row", "bottom end"),
    "list.open": ("Open row", "enter full message"),
    "tree.fold": ("Fold branch", "collapse"),
    "tree.unfold": ("Unfold branch", "expand"),
    "sheet.close": ("Back", "close escape"),
    "sheet.find": ("Find in text", "search"),
    "sheet.again": ("Next match", "search find"),
    "sheet.before": ("Previous match", "search find"),
    "sheet.filter": ("Filter rows", "search only"),
    "sheet.copy": ("Copy text", "clipboard yank"),
    "find.text": ("Find in list", "search text"),
    "find.again": ("Next match", "search find"),
    "find.before": ("Previous match", "search find"),
    "find.filter": ("Filter rows", "search only"),
    # The message
    "message.next": ("Next form of the message", "view raw json"),
    "message.sides": ("Full beside sent", "mask compare"),
    "message.raw": ("Show raw text", "plain"),
    "message.rendered": ("Show as Markdown", "rendered typeset"),
    "message.json": ("Show as JSON", "tree structure"),
    "message.wire": ("Show on the wire", "raw payload"),
    "message.fold": ("Fold", "json collapse"),
    "message.unfold": ("Unfold", "json expand"),
    "message.all": ("Open the whole result", "cut truncated"),
    "message.show": ("Show image", "viewer picture"),
    "message.save": ("Save image or text", "file export write"),
    # Screens
    "app.runs": ("Runs", "stored list history find resume"),
    "app.home": ("Home", "cascades files folder open"),
    "app.snapshots": ("Snapshots", "frozen tests review regression"),
    "app.sql": ("SQL console", "query database tables"),
    "app.settings": ("Settings and keys", "preferences config options keys"),
    "app.palette": ("Palette", "commands"),
    "app.help": ("Help", "keys signs shortcuts cheat sheet"),
    "app.theme": ("Next theme", "colours dark light"),
    "app.interrupt": ("Interrupt", "copy stop quit"),
    "app.screenshot": ("Screenshot", "picture svg save screen image"),
    "app.suspend": ("Suspend to the shell", "background fg"),
    "app.quit": ("Quit", "exit leave"),
    # Runs and home
    "runs.filter": ("Filter runs", "search status tokens text"),
    "runs.sort": ("Sort runs", "order cost time tokens"),
    "runs.mark": ("Mark run", "select compare"),
    "runs.compare": ("Compare runs", "diff two"),
    "runs.resume": ("Resume run", "continue go on unfinished"),
    "runs.fork": ("Fork run", "branch what if"),
    "runs.freeze": ("Freeze as test", "snapshot regression"),
    "runs.export": ("Export run", "write file messages spans"),
    "runs.copy": ("Copy session id", "clipboard yank"),
    "runs.delete": ("Delete run", "remove permanently"),
    "runs.close": ("Back", "close escape"),
    "home.next": ("Other list", "cascades runs"),
    "home.previous": ("Other list, backwards", "cascades runs"),
    "home.demo": ("Copy the examples", "demo tour"),
    "home.look": ("Reload folder", "refresh look again"),
    "home.new": ("New cascade", "template create"),
    "home.close": ("Back to the Bench", "close escape"),
    # Compare, sweep, candidates
    "compare.next": ("Next difference", ""),
    "compare.previous": ("Previous difference", ""),
    "compare.apply": ("Apply strategy B", "write file"),
    "compare.plot": ("Plot tokens and cost", "chart graph"),
    "compare.sweep": ("Sweep strategies", "try many grid"),
    "compare.export": ("Export comparison", "html json file"),
    "candidates.choose": ("Choose candidate", "pick winner"),
    "candidates.reject": ("Reject all candidates", "fail"),
    "candidates.outputs": ("Compare outputs", "diff"),
    "candidates.prompts": ("Compare prompts", "diff"),
    "candidates.mark": ("Mark candidate", "compare with"),
    "candidates.why": ("Show evaluator", "why judge reasons"),
    "candidates.plot": ("Plot quality and cost", "chart graph"),
    "candidates.context": ("Open call in the Bench", "context"),
    "candidates.next": ("Next phase with candidates", ""),
    "candidates.previous": ("Previous phase with candidates", ""),
    "sweep.stop": ("Stop sweep", "cancel"),
    "sweep.plot": ("Plot tokens and cost", "chart graph"),
    "request.next": ("Next difference", ""),
    "request.previous": ("Previous difference", ""),
    "request.edit": ("Open file at the line", "edit"),
    "changed.live": ("Go live from here", "call provider"),
    "changed.stop": ("Stop run", "cancel"),
    # Snapshots
    "snapshots.accept": ("Accept change", "new expectation"),
    "snapshots.reject": ("Reject change", "keep expectation"),
    "snapshots.skip": ("Skip", "later"),
    "snapshots.accept_all": ("Accept all", ""),
    "snapshots.reject_all": ("Reject all", ""),
    "snapshots.skip_all": ("Skip all", ""),
    "snapshots.full": ("Full requests side by side", "diff"),
    "snapshots.edit": ("Open file at the line", "edit cascade"),
    "snapshots.next": ("Next snapshot", "open undecided"),
    "snapshots.check": ("Check all again", "replay run tests"),
    "snapshots.stop": ("Stop check", "cancel"),
    "snapshots.copy": ("Copy review", "clipboard yank"),
    "snapshots.pane": ("Next pane", "focus"),
    "snapshots.pane_back": ("Previous pane", "focus"),
    "snapshots.close": ("Back", "close escape"),
    # Editor, SQL, settings
    "editor.save": ("Save file", "write"),
    "editor.complete": ("Complete", "suggest"),
    "editor.next": ("Next problem", "error"),
    "editor.previous": ("Previous problem", "error"),
    "editor.find": ("Find in file", "search"),
    "editor.again": ("Find next", "search"),
    "editor.before": ("Find previous", "search"),
    "editor.line": ("Go to line", "column"),
    "editor.pane": ("Text or problems", "focus pane"),
    "editor.external": ("Edit in $EDITOR", "vim emacs code"),
    "editor.close": ("Back", "close escape"),
    "text.undo": ("Undo", ""),
    "text.redo": ("Redo", ""),
    "sql.ask": ("Run query", "ask execute"),
    "sql.earlier": ("Earlier query", "history"),
    "sql.later": ("Later query", "history"),
    "sql.pane": ("Next pane", "focus tables results"),
    "sql.right": ("Columns to the right", "scroll"),
    "sql.left": ("Columns to the left", "scroll"),
    "sql.save": ("Save results", "csv json parquet export"),
    "sql.close": ("Cancel query, or back", "close escape"),
    "settings.tab": ("Settings or keys", "switch"),
    "settings.filter": ("Filter settings", "search"),
    "settings.change": ("Change setting", "value user file"),
    "settings.workspace": ("Change setting in the workspace", "value"),
    "settings.unset": ("Unset setting", "remove default"),
    "settings.external": ("Edit settings in $EDITOR", "file"),
    "settings.close": ("Back", "close escape"),
    # Forms, dialogs, borders
    "form.send": ("Send answer", "submit"),
    "form.next": ("Next question", ""),
    "form.previous": ("Previous question", ""),
    "choices.choose": ("Choose", "select tick"),
    "borders.narrower": ("Narrow the left side", "resize border"),
    "borders.wider": ("Widen the left side", "resize border"),
    "borders.higher": ("Raise the lower pane", "resize border"),
    "borders.lower": ("Shrink the lower pane", "resize border"),
    "dialog.close": ("Close dialog", "cancel escape"),
    "dialog.interrupt": ("Interrupt", "copy close stop"),
}
"""By command: its name, and words that people may search for it by."""


class NamedCommand(Struct, frozen=True):
    """A command as the palette and the help show it."""

    id: str
    name: str
    key: str
    """As people read it; empty for none."""
    sentence: str
    words: str = ""


def name_of(key: Key) -> str:
    """The name of a command; the beginning of its sentence where it has none of its own."""
    named = _NAMES.get(key.id)
    return named[0] if named else key.help.partition(":")[0].partition(";")[0]


def named(keys: Iterable[Key]) -> tuple[NamedCommand, ...]:
    """Keys of the table as commands."""
    return tuple(
        NamedCommand(key.id, name_of(key), display(key.keys), key.help, _NAMES.get(key.id, ("", ""))[1]) for key in keys
    )
