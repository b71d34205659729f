"""Finds the files that ship with litellm (prices, encodings) without importing it: the import takes seconds."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def litellm_folder() -> Path:
    """The installed package's folder. Raises FileNotFoundError where it is not installed."""
    spec = find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("litellm is not installed")
    return Path(spec.submodule_search_locations[0])


def prices_file() -> Path:
    """The price map as of the release: JSON, model name to facts."""
    return litellm_folder() / "model_prices_and_context_window_backup.json"


def encodings_folder() -> Path:
    """Where cl100k, o200k and p50k lie under the names that tiktoken gives to downloads."""
    return litellm_folder() / "litellm_core_utils" / "tokenizers"
