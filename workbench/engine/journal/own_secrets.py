"""Replaces secrets in the cascade's own text before anything is journaled, as in any other text that enters a run.

The journaled text is the text that runs. So a resumed, replayed or forked run assembles the same requests from the
journal, and a run of the same file replaces the same secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from workbench.engine.definition import Definition, DefinitionError
from workbench.language.edit.edits import replace as edited
from workbench.language.edit.edits import same
from workbench.language.edit.errors import EditError
from workbench.language.problem import Problem, Severity, texts_of
from workbench.language.read.source import Source
from workbench.language.read.text import read_source

Redact = Callable[[str], tuple[str, int]]
_LABEL = re.compile(r"\[redacted [A-Za-z0-9_.-]{1,64}\]")


def without_secrets(definition: Definition, redact: Redact) -> Definition:
    """The definition in which each secret of its text and of the included texts is replaced by its label.

    Raises DefinitionError with the line if the text without the secret would mean something else.
    """
    includes = {name: redact(text)[0] for name, text in definition.includes.items()}
    source = definition.source
    cleaned, count = redact(source.text)
    wanted = _cleaned(source.data, redact)  # An escape in the text may hide what its value shows.
    if not count and same(source.data, wanted):
        return definition if includes == definition.includes else replace(definition, includes=includes)
    for text in (cleaned, _quoted(source, redact)):
        if redact(text)[1]:
            continue
        try:
            found = Definition.of(source.bom + text, source.file, includes)
        except DefinitionError:
            continue
        if same(found.source.data, wanted):
            return found
    at = next((at for at, (old, new) in enumerate(zip(source.text, cleaned, strict=False)) if old != new), 0)
    raise DefinitionError((_stands_badly(source, at),))


def input_without_secrets(input: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """The input of a run, with a label for each secret in it."""
    text, secrets = redact(json.dumps(dict(input), ensure_ascii=False))
    given: dict[str, Any] = json.loads(text) if secrets else dict(input)
    return given


def labels_in(definition: Definition) -> int:
    """Returns how many labels stand for secrets in a definition's texts."""
    return sum(len(_LABEL.findall(text)) for text in (definition.source.text, *definition.includes.values()))


def _quoted(source: Source, redact: Redact) -> str:
    """The text with every value that holds a secret written anew: a label without quotes would be a list in YAML."""
    text = source.text
    for path, value in texts_of(source.data, ()):
        clean, count = redact(value)
        if count:
            try:
                text = edited(read_source(text, source.file)[0], path, clean)
            except EditError:
                break
    return redact(text)[0]


def _cleaned(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)[0]
    if isinstance(value, dict):
        return {redact(key)[0] if isinstance(key, str) else key: _cleaned(item, redact) for key, item in value.items()}
    return [_cleaned(item, redact) for item in value] if isinstance(value, list) else value


def _stands_badly(source: Source, offset: int) -> Problem:
    return Problem(
        Severity.ERROR,
        "secret",
        "a secret stands here that cannot be replaced before the run is stored; take it out of the file",
        source.file,
        source.between(offset, offset + 1),
        hint="tools read keys from variables, models need none",
    )
