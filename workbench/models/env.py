"""Reads ``.env`` files: names and values only, nothing expanded, without names that could redirect programs or
requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from workbench.language.problem import Problem, Severity, TextSpan

LARGEST = 1_000_000
"""Characters of a file that is still read."""

# Not python-dotenv: its dotenv_values() only logs that a line cannot be read, and here each such line is a problem with
# its place and reason.
_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[^\s=#]+)[ \t]*=[ \t]*")
_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}

_REFUSED = re.compile(
    r"PATH|.*_PATH|LD_.*|DYLD_.*|PYTHON.*|PIP_.*|VIRTUAL_ENV|PERL5.*|RUBY.*|NODE_.*|NPM_CONFIG_.*|JAVA_.*|_JAVA_.*|GIT_.*"
    r"|BASH_.*|ENV|IFS|SHELL|SHELLOPTS|HOME|USER|LOGNAME|TMPDIR|XDG_.*|EDITOR|VISUAL|PAGER|BROWSER|TERM|GCONV_.*|MALLOC_.*"
    r"|OPENSSL_.*|SSL_.*|SSLKEYLOGFILE|REQUESTS_CA_BUNDLE|CURL_.*|.*_PROXY|LITELLM_(?!PROXY_API_KEY$).*|.*_BASE_URL|.*_BASE_URI|.*_API_BASE"
    r"|.*_API_HOST|.*_ENDPOINT|.*_BASE|DOCKER_.*|WORKBENCH_(?!(?:API_KEY|TOKEN)$).*|TEXTUAL.*",
    re.IGNORECASE,
)
"""Names a file may not set: search paths, loaders and interpreters, proxies and certificates, base URLs, settings."""
_ADDRESS = re.compile(r".*(_BASE|_BASE_UR[LI]|_API_HOST|_ENDPOINT|_PROXY)", re.IGNORECASE)
"""Of these, names of addresses: without them requests go elsewhere than the file says."""

_SETTING = re.compile(r"WORKBENCH_.*", re.IGNORECASE)
"""Names of settings, which are read from files of their own and from real variables."""


class Dotenv(Struct, frozen=True):
    """The content of a ``.env`` file."""

    values: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    """Names that were left out because a file may not set them."""
    problems: tuple[Problem, ...] = ()
    """Lines that could not be read, and addresses and settings that were left out."""

    def over(self, environ: Mapping[str, str]) -> dict[str, str]:
        """``environ`` with these values beneath it: a variable that is really set always wins, even when empty."""
        return {**self.values, **environ}


def read(text: str, file: str = ".env") -> Dotenv:
    """The assignments of a text: ``NAME=value``, ``export NAME=value``, quotes single (as is) or double (escapes), over
    several lines if need be; ``#`` begins a comment at the start of a line or after a blank. The last one wins."""
    values: dict[str, str] = {}
    refused: dict[str, None] = {}
    problems: list[Problem] = []
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        match = _NAME.match(text, at, end)
        if match is None or not _VALID.fullmatch(match["name"]):
            if (line := text[at:end].strip()) and not line.startswith("#"):
                problems.append(_problem(text, at, end, file, "expected NAME=value"))
            at = end + 1
            continue
        value, after = _value(text, match.end())
        if value is None:
            problems.append(_problem(text, at, end, file, f"the quote of {match['name']} is not closed"))
            at = end + 1
            continue
        end = _line_end(text, after)
        rest = text[after:end].strip()
        if rest and not rest.startswith("#"):
            problems.append(_problem(text, after, end, file, f"text after the quote of {match['name']} is ignored"))
        if _REFUSED.fullmatch(match["name"]):
            refused[match["name"]] = None
            if _ADDRESS.fullmatch(match["name"]):
                words = f"{match['name']} has no effect: a file cannot say where requests go. Set it as a variable"
                problems.append(_problem(text, at, end, file, words))
            elif _SETTING.fullmatch(match["name"]):
                words = f"{match['name']} has no effect: a setting stands in workbench.yaml, or is set as a variable"
                problems.append(_problem(text, at, end, file, words))
        else:
            values[match["name"]] = value
        at = end + 1
    return Dotenv(values, tuple(refused), tuple(problems))


def load(path: Path) -> Dotenv:
    """The file, or an empty one if there is none; an unreadable file is a problem. A pipe is not read."""
    if path.exists() and not path.is_file():
        return Dotenv(problems=(Problem(Severity.WARNING, "env", "cannot be read: not a file", str(path)),))
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(LARGEST + 1)
        if len(text) > LARGEST:
            return Dotenv(problems=(Problem(Severity.WARNING, "env", "too large to be a .env file", str(path)),))
        return read(text, str(path))
    except FileNotFoundError:
        return Dotenv()
    except (OSError, UnicodeDecodeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
        return Dotenv(problems=(Problem(Severity.WARNING, "env", f"cannot be read: {reason}", str(path)),))


def _value(text: str, at: int) -> tuple[str | None, int]:
    """The value that begins at an offset and the offset after it; None for an unclosed quote."""
    quote = text[at : at + 1]
    if quote not in ("'", '"') or not quote:
        end = _line_end(text, at)
        return re.split(r"(?:^|[ \t])#", text[at:end], maxsplit=1)[0].strip(), end
    parts: list[str] = []
    position = at + 1
    while position < len(text):
        character = text[position]
        if character == quote:
            return "".join(parts), position + 1
        if character == "\\" and quote == '"' and position + 1 < len(text):
            following = text[position + 1]
            parts.append(_ESCAPES.get(following, "\\" + following))
            position += 2
        else:
            parts.append(character)
            position += 1
    return None, len(text)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _problem(text: str, at: int, end: int, file: str, message: str) -> Problem:
    line = text.count("\n", 0, at) + 1
    return Problem(Severity.WARNING, "env", message, file, TextSpan(line, 1, line, end - at + 1))
