"""Words of the language that are needed without its models: tools with a meaning of their own, places of marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

SHELL = "linux_shell"
"""Runs the command of a pipeline's node."""
ASK_HUMAN = "ask_human"
"""Asks a person; the answer is ``state.<phase>``."""
SET_STATE = "set_state"
_SQL = "there are no named database connections; smart_sql_run and sql_data query files and earlier outputs"
_BROWSER = "rabbitize_start and its kin, or browser_start, drive a browser"
_VOICE = "nothing here speaks or listens"
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("read_image", "read_images"), "read_file shows the model an image"),
    "list_images": "list_files lists the images of a folder",
    **dict.fromkeys(("sql_query", "sql_search", "list_sql_connections"), _SQL),
    **dict.fromkeys(("create_plotly", "create_vega_lite"), "create_chart draws a chart"),
    **dict.fromkeys(("request_decision", "show_ui"), "ask_human_custom asks a person by a form"),
    **dict.fromkeys(("say", "speak_text", "listen", "transcribe_audio"), _VOICE),
    **dict.fromkeys(("await_signal", "fire_signal"), "runs send each other no signals; ask_human waits for a person"),
    **dict.fromkeys(("control_browser", "extract_page_content", "get_browser_status", "browser"), _BROWSER),
    **dict.fromkeys(("fetch_url_with_browser", "curl_text", "web_navigator"), _BROWSER),
    "linux_shell_dangerous": "linux_shell runs commands, in the sandbox",
    "rlm_exec": "run_code runs code, in the sandbox",
    "append_state": "set_state sets a whole value",
    "create_artifact": "every output is kept with its run",
}
"""Tools of the original that are not here, with what is."""
ROUTE_TO = "route_to"
"""Offered where a phase has a choice of what comes next; no tool to list."""
MarkPlace = Literal["tools", "system", "task", "last"]
"""Places that a mark can name: behind the tools, the system messages, the first user message, the last message."""
MARK_PLACES: tuple[MarkPlace, ...] = get_args(MarkPlace)
LIST_ITEM = "[]"
"""Stands in a path of keys for an item of a list."""
LATER_LIST = "cells"
"""The key that tells a file of a later edition of the language."""
REPAIR = "auto_fix"
"""What later editions write under ``on_error`` where a model shall rewrite the code of a tool that failed."""
LATER_NAMES: Mapping[str, Mapping[str, str]] = {
    "Cascade": {LATER_LIST: "phases", "takes": "soundings", "candidates": "soundings"},
    "Phase": {"hitl": "htmx", "skills": "tackle", "traits": "tackle", "takes": "soundings", "candidates": "soundings"},
    "ContextSource": {"cell": "phase"},
    "Anchors": {"from_cells": "from_phases"},
    "AutoContext": {"intra_cell": "intra_phase", "inter_cell": "inter_phase"},
    "TokenBudget": {"cell_overrides": "phase_overrides"},
}
"""Names that later editions have for keys, by the mapping that has them."""
