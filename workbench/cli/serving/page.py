"""The page that holds the terminal: everything it loads comes from this server."""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from pathlib import Path

STYLE = """
@font-face { font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }
@font-face { font-family: "Roboto Mono"; font-style: italic;
             src: url("/static/fonts/RobotoMono-Italic-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #10141b; color: #d8dee9; font: 15px "Roboto Mono", monospace; }
.textual-terminal { position: absolute; inset: 0; }
.note { position: absolute; inset: 0; display: flex; align-items: center; justify-content: center; text-align: center; }
body.-first-byte .opening { display: none; }
.closed, .refused { display: none; z-index: 10; background: #10141b; }
body.-closed.-first-byte .closed, body.-closed:not(.-first-byte) .refused { display: flex; }
a { color: #8ab4f8; }
"""

SCRIPT = """
"use strict";
// Keys belong to the app: from its first byte on, and again whenever the page is looked at.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
document.addEventListener("DOMContentLoaded", () =>
  new MutationObserver(focus).observe(document.body, { attributes: true, attributeFilter: ["class"] }));
window.addEventListener("focus", focus);
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/css/xterm.css">
<style>{style}</style>
<script src="/static/js/textual.js"></script>
<script src="/page.js"></script>
</head>
<body>
<div class="note opening"><p>Opening {title} …</p></div>
<div class="note closed"><p>The app has ended.<br><a href="/">Open it again</a></p></div>
<div class="note refused"><p>No app has come up: {most} pages may be open at once.<br>
Close one, and <a href="/">open it again</a>.</p></div>
<div id="start" hidden></div>
<div id="terminal" class="textual-terminal"
     data-session-websocket-url="{socket}" data-font-size="{size}"></div>
</body>
</html>
"""


def page(title: str, host: str, most: int, size: int = 15) -> str:
    """The page for a host such as ``127.0.0.1:8321``; ``most``: how many may be open; ``size``: of the letters, in
    pixels."""
    return PAGE.format(title=escape(title), style=STYLE, socket=escape(f"ws://{host}/ws"), most=most, size=size)


def static_folder() -> Path:
    """Where the terminal's script, style and fonts lie: inside of an installed package."""
    found = find_spec("textual_serve")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("textual-serve is not installed")
    return Path(found.origin).parent / "static"
