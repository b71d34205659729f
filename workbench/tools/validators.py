"""The built-in validators: functions that judge a text and answer ``{"valid", "reason"}``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from workbench.context.place import Place
from workbench.engine.contracts import ValidatorFault, ValidatorVerdict
from workbench.tools.builtin.data import DataError, DataTools
from workbench.tools.builtin.shell import Language, ShellTools
from workbench.tools.calling import call_function
from workbench.tools.registry import Function, Kind, Registry, Tool
from workbench.tools.schema import docstring_of, own_spec_of

# The Validators port: any registered function that takes ``content`` can judge a text by its name.

TIMEOUT_S = 60.0


class NeedsTrust(ValidatorFault):
    """A validator of a folder that is not trusted: it may not run."""

    needs_trust = True


class FunctionValidators:
    """Judges with the functions of a registry."""

    def __init__(self, registry: Registry, data: DataTools) -> None:
        """``data`` runs the code of validators that a cascade holds."""
        self._registry = registry
        self._data = data

    def names(self) -> list[str]:
        """Sorted."""
        return [tool.name for tool in self._registry if _can_judge(tool)]

    def describe(self, name: str) -> str | None:
        """First line of the docstring; None when no such validator is registered."""
        tool = self._registry.get(name)
        if tool is None or not _can_judge(tool):
            return None
        return tool.spec.description if tool.refusal else docstring_of(tool.function).first_line

    async def judge(
        self, name: str, content: str, input: Mapping[str, Any], state: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        """Call a validator with ``content`` and, if it takes them, ``input`` and ``state``.

        Raises NeedsTrust, or ValidatorFault when it is unknown, raises, takes longer than 60 s, or answers no verdict.
        """
        tool = self._registry.get(name)
        if tool is None or not _can_judge(tool):
            raise ValidatorFault(f"no validator is called '{name}'")
        if tool.refusal:
            raise NeedsTrust(f"'{name}' may not run: {tool.refusal}")
        given = {"content": content, "input": input, "state": state}
        takes = inspect.signature(tool.function).parameters
        arguments = {key: value for key, value in given.items() if key in takes}
        try:
            answer = await call_function(tool.function, arguments, tool.timeout_s or TIMEOUT_S, tool.users)
        except Exception as fault:
            raise ValidatorFault(f"'{name}' raised {type(fault).__name__}: {fault}") from fault
        return read_verdict(name, answer)

    async def judge_code(
        self, name: str, language: str, code: str, content: str, input: Mapping[str, Any], place: Place, index: int
    ) -> ValidatorVerdict:
        """Run the code in the sandbox over the text and the input of the run.

        Raises ValidatorFault when it fails, cannot run here, or answers no verdict.
        """
        try:
            answer = await self._data.judge(language, code, content, input)
        except Exception as fault:
            told = fault if isinstance(fault, DataError) else f"{type(fault).__name__}: {fault}"
            raise ValidatorFault(f"{told}") from fault
        return read_verdict(name, answer)


def _can_judge(tool: Tool) -> bool:
    return any(parameter.name == "content" for parameter in tool.spec.parameters)


def read_verdict(name: str, answer: Any) -> ValidatorVerdict:
    """The verdict in what a validator returned: ``{"valid", "reason", "score"?}``, its JSON text, or a bool.

    Raises ValidatorFault for anything else.
    """
    if isinstance(answer, ValidatorVerdict):
        return answer
    if isinstance(answer, bool):
        return ValidatorVerdict(answer, "" if answer else "not valid")
    body = answer
    if isinstance(answer, str):
        try:
            body = json.loads(answer)
        except (ValueError, RecursionError) as fault:
            raise ValidatorFault(f"'{name}' answered no verdict: {answer[:200]!r}") from fault
    if not isinstance(body, Mapping) or not isinstance(body.get("valid"), bool):
        raise ValidatorFault(f"'{name}' answered no verdict: {str(body)[:200]}")
    score = body.get("score")
    known = isinstance(score, (int, float)) and not isinstance(score, bool)
    return ValidatorVerdict(body["valid"], str(body.get("reason") or ""), float(score) if known else None)  # type: ignore[arg-type]


DEFAULT_MIN_CHARS = 10
"""Of ``simple_validator``."""
DEFAULT_MAX_CHARS = 10_000
"""Of ``length_check``."""
CODE_TIMEOUT_S = 30.0

EXAMPLE_INPUTS = {
    "length_check": '{"min_length": 200, "max_length": 2000}',
    "keyword_validator": '{"keywords": ["refund", "invoice"]}',
}
"""An input of the run, as JSON, for each built-in validator that reads it."""

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {
    "": "python",
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("bash", "shell", "console"), "bash"),
    "sh": "sh",
    **dict.fromkeys(("javascript", "js", "node"), "javascript"),
}


def simple_validator(content: str) -> dict[str, Any]:
    """Checks that the text is not empty and has at least 10 characters."""
    length = len(content.strip())
    return _verdict(length >= DEFAULT_MIN_CHARS, f"{length} characters, at least {DEFAULT_MIN_CHARS} are needed")


def length_check(content: str, input: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Checks the length in characters: input.min_length to input.max_length, by default 1 to 10,000."""
    given = input or {}
    least, most = _number(given, "min_length", 1), _number(given, "max_length", DEFAULT_MAX_CHARS)
    length = len(content.strip())
    return _verdict(least <= length <= most, f"{length:,} characters; {least:,} to {most:,} are allowed")


def keyword_validator(content: str, input: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Checks that every keyword of input.keywords (by default: important) occurs, in any letter case."""
    given = (input or {}).get("keywords", ["important"])
    words = given.split(",") if isinstance(given, str) else given
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise TypeError("input.keywords must be a list of text, or text separated by commas")
    missing = [word.strip() for word in words if word.strip().casefold() not in content.casefold()]
    return _verdict(not missing, f"missing: {', '.join(missing)}" if missing else "all keywords occur")


def json_format_validator(content: str) -> dict[str, Any]:
    """Checks that the text, or its first fenced block, is valid JSON."""
    fence = _FENCE.search(content)
    text = content if _starts_json(content) or fence is None else fence[2]
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        return _verdict(False, f"not valid JSON: {fault.msg} at line {fault.lineno}, column {fault.colno}")
    except (ValueError, RecursionError) as fault:
        return _verdict(False, f"not valid JSON: {fault}")
    return _verdict(True, "valid JSON")


class CodeValidator:
    """code_execution_validator over one sandbox."""

    def __init__(self, shell: ShellTools) -> None:
        self.shell = shell

    async def code_execution_validator(self, content: str) -> dict[str, Any]:
        """Runs the first fenced block of code in the sandbox and checks that it ends without an error."""
        fence = next((f for f in _FENCE.finditer(content) if f[1].lower() in _LANGUAGES), None)
        if fence is None:
            return _verdict(False, "there is no fenced block of code that can be run")
        language = cast(Language, _LANGUAGES[fence[1].lower()])
        argv, readable = await self.shell.interpreter(language)
        finished = await self.shell.sandbox.run(
            argv, timeout_s=CODE_TIMEOUT_S, stdin=fence[2].encode("utf-8", "replace"), readable=readable, writable=False
        )
        if finished.ok:
            return _verdict(True, f"the code ran: {finished.stdout.strip()[:200] or 'no output'}")
        if finished.timed_out:
            return _verdict(False, f"the code did not end within {CODE_TIMEOUT_S:g} s")
        if finished.truncated:
            return _verdict(False, "the code wrote more than the output limit")
        last = finished.stderr.strip().splitlines()[-3:]
        return _verdict(False, f"exit code {finished.exit_code}: {' '.join(last) or 'no error text'}")


def validator_tools(shell: ShellTools) -> dict[str, Callable[[], Tool]]:
    """Returns the functions that describe each of them, by name; a phase may list them as tools, too."""
    plain: list[Function] = [simple_validator, length_check, keyword_validator, json_format_validator]
    coded = CodeValidator(shell).code_execution_validator
    tools: dict[str, Callable[[], Tool]] = {function.__name__: partial(_tool, function) for function in plain}
    return tools | {coded.__name__: partial(_tool, coded, needs_sandbox=True)}


def _tool(function: Function, *, needs_sandbox: bool = False) -> Tool:
    name = function.__name__
    spec = own_spec_of(name, function, side_effects=False)
    return Tool(name, spec, function, Kind.BUILTIN, timeout_s=2 * CODE_TIMEOUT_S, needs_sandbox=needs_sandbox)


def _verdict(valid: bool, reason: str) -> dict[str, Any]:
    return {"valid": valid, "reason": reason}


def _number(given: Mapping[str, Any], key: str, default: int) -> int:
    """A whole number of the input, which may be written as text. Raises ValueError or TypeError for other values."""
    value = given.get(key)
    return default if value in (None, "") else int(value)


def _starts_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
