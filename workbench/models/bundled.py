"""Finds the files that ship with litellm (prices, encodings) without importing it: the import takes seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PIECE = 100_000
"""Characters of the price map that are parsed in one step, which takes about a millisecond: it blocks all other
threads.
"""


@cache
def litellm_folder() -> Path:
    """The installed package's folder. Raises FileNotFoundError if it is not installed."""
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("litellm is not installed")
    return Path(spec.submodule_search_locations[0])


def prices_file() -> Path:
    """The price map as of the release: JSON, model name to facts."""
    return litellm_folder() / "model_prices_and_context_window_backup.json"


def encodings_folder() -> Path:
    """Folder with cl100k, o200k and p50k under the names that tiktoken gives to downloads."""
    return litellm_folder() / "litellm_core_utils" / "tokenizers"


@cache
def price_map() -> Mapping[str, Mapping[str, Any]]:
    """The price map, read once per process. Raises OSError, ValueError."""
    table = parsed_in_pieces(prices_file().read_text("utf-8"))
    table.pop("sample_spec", None)
    return table


def parsed_in_pieces(text: str) -> dict[str, Any]:
    """A JSON object of objects, parsed a few at a time if it is indented by four. Raises ValueError."""
    end, found = "\n    },\n", dict[str, Any]()
    start = text.find("{") + 1
    while (cut := text.find(end, start + PIECE)) >= 0:
        stop = cut + len(end) - 2
        try:
            found |= json.loads("{" + text[start:stop] + "}")
        except ValueError:
            break
        start = stop + 1
    else:
        found |= json.loads("{" + text[start:])
        return found
    whole: dict[str, Any] = json.loads(text)
    return whole
