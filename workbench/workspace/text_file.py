"""A text file that a person edits: read as it is, saved whole or not at all, and never over somebody else's change."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from workbench.files import write_whole

LONGEST_FILE = 1_000_000
"""Bytes of a file that can be edited; it is also what the language reads."""
LONGEST_LINE = 20_000
"""Characters of a line that can be edited: each key lays the whole line out again."""
SHOWN = 200_000
"""Characters that are shown of a file that cannot be edited."""

_BOM = "\ufeff"
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_OTHER_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


class CannotSave(Exception):
    """A text that was not written; the message begins with the file."""


class ChangedMeanwhile(CannotSave):
    """The file on disk is not the one that was read."""


class TextFile(Struct, frozen=True):
    """A file as read at one moment."""

    file: Path
    raw: bytes | None
    """None if the file did not exist."""
    text: str
    """Without a byte order mark; if ``refusal`` is set, only a part, for reading."""
    bom: str = ""
    refusal: str = ""
    """Why it can be looked at and not be changed; empty if it can be."""

    @classmethod
    def read(cls, file: Path) -> TextFile:
        """Read a file. Raises OSError."""
        try:
            raw = file.read_bytes()
        except FileNotFoundError:
            return cls(file, None, "")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as fault:
            shown = raw[:SHOWN].decode("utf-8", "replace")
            return cls(file, raw, _cut(shown), refusal=f"not UTF-8 at byte {fault.start + 1}")
        bom = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        refusal = unfit(text, len(raw))
        return cls(file, raw, _cut(text) if refusal else text, bom, refusal)

    def same_on_disk(self) -> bool:
        """Returns whether the file's content is unchanged."""
        try:
            return self.file.read_bytes() == self.raw
        except FileNotFoundError:
            return self.raw is None
        except OSError:
            return False

    def save(self, text: str, *, overwrite: bool = False) -> TextFile:
        """Write a text in place of the file, through a file beside it that is renamed; what was written is given back.

        Links are followed and permissions kept. Raises ChangedMeanwhile unless ``overwrite``, CannotSave.
        """
        if self.refusal:
            raise CannotSave(f"{self.file}: not saved: {self.refusal}")
        if not overwrite and not self.same_on_disk():
            raise ChangedMeanwhile(f"{self.file}: not saved: the file was changed by somebody else")
        try:
            raw = (self.bom + text).encode("utf-8")
        except UnicodeEncodeError as fault:
            raise CannotSave(f"{self.file}: not saved: character {fault.start + 1} is none of UTF-8") from None
        try:
            write_whole(self.file, raw)
        except OSError as fault:
            raise CannotSave(f"{self.file}: not saved: {fault.strerror or fault}") from fault
        return TextFile(self.file, raw, text, self.bom)


def unfit(text: str, size: int) -> str:
    """Returns why a text area cannot edit a text of this many bytes without loss or slowly; empty if it can."""
    if size > LONGEST_FILE:
        return f"{size:,} bytes; files of up to {LONGEST_FILE:,} can be changed here"
    ends = set(_LINE_ENDS.findall(text))
    if len(ends) > 1:
        return "it mixes several kinds of line ends, and all would become one"
    if (other := _OTHER_ENDS.search(text)) is not None:
        return f"it holds U+{ord(other[0]):04X}, which would become the end of a line"
    longest = max(map(len, _LINE_ENDS.split(text)), default=0)
    if longest > LONGEST_LINE:
        return f"a line of {longest:,} characters; lines of up to {LONGEST_LINE:,} can be changed here"
    return ""


def _cut(text: str) -> str:
    """The shown part of a text that is too large: its beginning, with lines of at most a few screens."""
    lines = text[:SHOWN].splitlines()
    cut = [line if len(line) <= 2_000 else line[:2_000] + " …" for line in lines]
    return "\n".join(cut) + ("\n…" if len(text) > SHOWN else "")
