"""The keys of the message viewer. A part of the one table in ``keys.py``."""

from __future__ import annotations

from workbench.tui.key import Key

MESSAGE_KEYS: tuple[Key, ...] = (
    Key(
        "message.next", "tab", "next_form", "message", "The next form that there is of this message", "Message", "form"
    ),
    Key("message.sides", "m", "form('sides')", "message", "In full beside what the model saw", "Message"),
    Key("message.raw", "r", "form('raw')", "message", "The text as it is", "Message"),
    Key("message.rendered", "t", "form('rendered')", "message", "The text as Markdown, typeset", "Message"),
    Key("message.json", "s", "form('json')", "message", "The text as JSON: a structure that folds", "Message"),
    Key("message.wire", "w", "form('wire')", "message", "The message as it goes over the wire", "Message"),
    Key("message.fold", "left,h", "fold(True)", "message", "Fold what is around the line (JSON)", "Message"),
    Key("message.unfold", "right,l", "fold(False)", "message", "Unfold what begins at the line (JSON)", "Message"),
    Key("message.all", "o", "open_all", "message", "Open all of a result that was cut for the model", "Message", "all"),
    Key("message.show", "O", "show_picture", "message", "Show the image in a viewer of the system", "Message", "show"),
    Key("message.save", "S", "save", "message", "Save the image, or the text, to a file", "Message", "save"),
)

MESSAGE_CONTEXTS: dict[str, tuple[str, ...]] = {"message": ("sheet", "list")}
"""For ``CONTEXTS``."""
