"""Replaces secrets where text enters a run: known values in the forms they travel in, and key-shaped strings."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote, urlsplit

SHORTEST = 8
"""Characters: a shorter value is never replaced, because it would take ordinary text with it."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|PAT)(?:S?$|_)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r".*_(?:SOCK|PATH|FILE|DIR|HOME|ID)", re.IGNORECASE)
"""Names of places and ids, whatever else they say."""
_LABEL = re.compile(r"\[redacted [A-Za-z0-9_.-]{1,64}\]")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_UNLABELLED = re.compile(r"[^A-Za-z0-9_.-]+")


class _Shape(NamedTuple):
    """A kind of key: a substring that every match holds, the pattern (compiled when a text with that substring first
    comes: most runs have none), and the label. Group 1, if any, is the secret.
    """

    needle: str
    pattern: str
    label: str


def _shape(needle: str, tail: str, label: str = "key") -> _Shape:
    """A token that begins with a literal. The look-behind stands after it, so that the search is for the literal."""
    head = re.escape(needle)
    return _Shape(needle, rf"{head}(?<![A-Za-z0-9_-]{head}){tail}", label)


_SHAPES: tuple[_Shape, ...] = (
    _Shape(
        "PRIVATE KEY-----",
        r"-----BEGIN (?:[A-Z]{1,16} ){0,3}PRIVATE KEY-----"
        r"(?:[^-]|-(?!----)){0,20000}+(?:-----END [A-Z ]{1,60}-----)?",
        "private-key",
    ),
    _shape("eyJ", r"[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+", "jwt"),
    _shape("sk-", r"[A-Za-z0-9_-]{20,}+"),
    _shape("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _shape("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    *(_shape(f"gh{kind}_", r"[A-Za-z0-9]{36,}+", "github-token") for kind in "pousr"),
    _shape("github_pat_", r"[A-Za-z0-9_]{22,}+", "github-token"),
    _shape("glpat-", r"[A-Za-z0-9_-]{20,}+", "gitlab-token"),
    _shape("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    *(_shape(f"xox{kind}-", r"[A-Za-z0-9-]{10,}+", "slack-token") for kind in "abeprs"),
    *(_shape(f"{use}_{mode}_", r"[A-Za-z0-9]{16,}+") for use in ("sk", "rk") for mode in ("live", "test")),
    _shape("hf_", r"[A-Za-z0-9]{30,}+"),
    _shape("gsk_", r"[A-Za-z0-9]{40,}+"),
    _shape("xai-", r"[A-Za-z0-9]{40,}+"),
    _shape("npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _shape("Bearer ", r"([A-Za-z0-9._~+/=-]{20,}+)", "token"),
    _shape("bearer ", r"([A-Za-z0-9._~+/=-]{20,}+)", "token"),
    _Shape("://", r"://[^\s/@:]{0,128}:([^\s/@,;\"'<>()\[\]{}]{1,256})(?=@)", "password"),
)


_HYPHEN, _UNDERSCORE = "-", "_"
_BY_MARKS: Mapping[tuple[bool, bool], tuple[_Shape, ...]] = {
    (hyphen, underscore): tuple(
        shape
        for shape in _SHAPES
        if (hyphen or _HYPHEN not in shape.needle) and (underscore or _UNDERSCORE not in shape.needle)
    )
    for hyphen in (False, True)
    for underscore in (False, True)
}
"""The shapes that a text can hold, by whether it has a hyphen and an underscore: most texts lack one of them, and
are then searched for a third as many."""


def is_secret(value: str, name: str = "") -> bool:
    """Returns whether a value can be replaced without harm to ordinary text.

    A value under a name that says key, token, secret or password (or under none) counts unless it is short or reads
    like plain words; under any other name only a long random token does.
    """
    if len(value) < SHORTEST or _LABEL.search(value):
        return False
    if name and (_ELSEWHERE.fullmatch(name) or not _SECRET_NAME.search(name)):
        return any(len(run) >= 16 and _mixed(run) for run in re.split(r"[^A-Za-z0-9]+", value))
    words = re.fullmatch(r"[A-Z]?[a-z]+(?:[-_. ][A-Z]?[a-z]+)?|[A-Z]+(?:_[A-Z]+)*", value)
    return words is None and not re.fullmatch(r"\d{1,11}|[\d.:/-]{1,15}", value) and len(set(value)) > 3


def _mixed(run: str) -> bool:
    """Letters and digits, and no hexadecimal: that is a commit, a digest or an id."""
    return any(c.isdigit() for c in run) and any(c.isalpha() for c in run) and not _HEX.fullmatch(run)


def without_password(url: str) -> str:
    """A URL as it may be shown: without the name and the password that may stand before its host."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else url


class Redactor:
    """Callable on text: ``(text) -> (text, count)``. Replacing twice changes nothing.

    ``values`` are secrets, by the name to show instead (``[redacted NAME]``) or without names. Of a URL with a
    password, only the password is replaced. With ``shapes``, strings that look like keys of common services are
    replaced, too.
    """

    def __init__(self, values: Mapping[str, str] | Iterable[str] = (), shapes: bool = True) -> None:
        named = values.items() if isinstance(values, Mapping) else [("", value) for value in values]
        forms: dict[str, str] = {}
        for name, value in named:
            for secret in _secrets(value.strip(), name):
                label = _UNLABELLED.sub("-", name)[:64] or "secret"
                for form in _forms(secret):
                    forms.setdefault(form, f"[redacted {label}]")
        self._forms = forms
        self._shapes = shapes

    def __call__(self, text: str) -> tuple[str, int]:
        text, count = self._known(text)
        while self._shapes:
            text, found = _shaped(text)
            if not found:
                break
            count += found
        return text, count

    def _known(self, text: str) -> tuple[str, int]:
        """Replace all forms at once, the longest first if two begin together; labels stay."""
        present = [form for form in self._forms if form in text]
        if not present:
            return text, 0
        forms = "|".join(re.escape(form) for form in sorted(present, key=len, reverse=True))
        pattern = re.compile(f"{_LABEL.pattern}|{forms}")
        return _replaced(pattern, text, lambda match: self._forms.get(match.group(), match.group()))


def _shaped(text: str) -> tuple[str, int]:
    total = 0
    for needle, pattern, label in _BY_MARKS[_HYPHEN in text, _UNDERSCORE in text]:
        if needle in text:
            text, count = _replaced(_compiled(pattern), text, _labeller(f"[redacted {label}]"))
            total += count
    return text, total


_compiled = cache(re.compile)


def _labeller(label: str) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        if match.re.groups:
            return match.group()[: match.start(1) - match.start()] + label
        if match.group().startswith("sk-") and not any(c.isdigit() for c in match.group()):
            return match.group()
        return label

    return replace


def _replaced(pattern: re.Pattern[str], text: str, label: Callable[[re.Match[str]], str]) -> tuple[str, int]:
    parts: list[str] = []
    end = count = 0
    for match in pattern.finditer(text):
        replacement = label(match)
        if replacement != match.group():
            parts += (text[end : match.start()], replacement)
            end = match.end()
            count += 1
    return ("".join([*parts, text[end:]]), count) if count else (text, 0)


def _secrets(value: str, name: str) -> list[str]:
    if "://" in value and "\n" not in value:
        try:
            password = urlsplit(value).password or ""
        except ValueError:
            password = ""
        found = [password, unquote(password)]
        return [secret for secret in dict.fromkeys(found) if is_secret(secret)]
    return [value] if is_secret(value, name) else []


def _forms(secret: str) -> Iterable[str]:
    """The secret as it is, in JSON, in a URL, and within base64 at each of the three alignments."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    data = secret.encode("utf-8", "surrogatepass")
    yield quote(data, safe="")
    yield quote_plus(data)
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + data).decode()
        start = -(-shift * 8 // 6)
        end = (shift + len(data)) * 8 // 6
        inner = whole[start:end]
        if len(inner) >= SHORTEST:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")
