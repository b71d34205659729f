"""Reads files as the importers do, and holds all that came of it against what is stored.

A test says what it is about; what else its file gave (counts, times, names, remarks) is compared here, so that a field
that gets lost shows wherever a test reads one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from tests.support.stored import check_stored
from workbench.importers import reading
from workbench.importers.reading import FoundConversation

STORED = Path(__file__).parent / "stored"
LONG = 400
"""Characters of a text that are stored; of a longer one there is a checksum beside."""
given: list[Any] = []
"""What the test that is running has read."""


def read_file(file: bytes, wanted: str = "") -> Iterator[FoundConversation]:
    """The conversations in a file, each noted down."""
    for one in reading.read_file(file, wanted):
        given.append([one.format.name, told(one)])
        yield one


def told(value: Any) -> Any:
    """A value as JSON, without fields that are empty or as they are where nothing is said."""
    if isinstance(value, FoundConversation):
        return told([value.evidence, value.also, value.conversation])
    if isinstance(value, Struct):
        held = {
            one.name: told(getattr(value, one.name)) for one in fields(value) if getattr(value, one.name) != one.default
        }
        return {name: field for name, field in held.items() if field not in ("", None, [], {}, False)}
    if isinstance(value, Mapping):
        return {str(key): told(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if isinstance(value, str) and len(value) > LONG:
        return f"{value[:LONG]}… {len(value)} {hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return value if value is None or isinstance(value, str | int | float) else str(value)


def compared(file: str, test: str) -> None:
    """Compare what a test has read with what is stored of it."""
    path = STORED / f"{file}.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[test] = given
    check_stored(path, json.dumps(known, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def lines_of(file: bytes) -> Iterator[str]:
    """What a file gives, as lines: of each conversation what is beside its messages, then a line for each message."""
    for one in reading.read_file(file):
        conversation = told(one.conversation)
        threads = conversation.pop("threads", [])
        yield json.dumps([one.format.name, conversation], ensure_ascii=False)
        for thread in threads:
            said = thread.pop("said", [])
            yield f"  {json.dumps(thread, ensure_ascii=False)}"
            yield from (f"    {json.dumps(message, ensure_ascii=False)}" for message in said)
