"""Templates of a cascade: rendered in the sandbox, with caps, and with a place for every undefined name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any

from jinja2 import Template, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from msgspec import Struct

from workbench.language.clean import clean_line
from workbench.language.templates.limits import BUDGET, MAX_OUTPUT, Budget, LimitReached
from workbench.language.templates.names import (
    TemplateFault,
    first_tag,
    syntax_fault,
)
from workbench.language.templates.sandbox import SANDBOX, CheckedText

CONDITION_SHIFT = 3
"""Columns that ``condition_template`` adds before the first line of a condition without braces."""
_FALSE = frozenset({"", "false", "no", "none", "null", "0", "0.0", "[]", "{}", "()"})


class Rendered(Struct, frozen=True):
    """A rendered template and the undefined names it met, each ``(expression, line, column)`` within the template."""

    text: str
    undefined: tuple[tuple[str, int, int], ...] = ()


class Outline(Struct, frozen=True):
    """The names that a template uses, known without rendering it."""

    names: frozenset[str]
    """The names of the outside that it uses."""
    inserts_only: bool
    """It only inserts values: it can neither loop, nor call, nor make a value larger."""


class Renderer:
    """Renders templates in this process; compiled ones are kept."""

    def __call__(self, template: str, names: Mapping[str, Any]) -> Rendered:
        """``names`` is plain JSON; other values are copied to it. Raises TemplateFault."""
        compiled, wanted = _compiled(template)
        budget = Budget()
        token = BUDGET.set(budget)
        try:
            given = {name: plain(names[name]) for name in wanted if name in names}
            text = _streamed(compiled, given)
        except TemplateFault:
            raise
        except LimitReached as fault:
            raise _placed(str(fault), fault.__traceback__, compiled, template, budget.place) from None
        except RecursionError as fault:
            raise _placed(
                "it calls itself without end, or a value in it is nested too deeply",
                fault.__traceback__,
                compiled,
                template,
                budget.place,
            ) from None
        except Exception as fault:
            message = clean_line(str(fault) or type(fault).__name__, 300)
            raise _placed(message, fault.__traceback__, compiled, template, budget.place) from fault
        finally:
            BUDGET.reset(token)
        return Rendered(text, tuple(budget.undefined))


def condition_shift(text: str) -> int:
    """Columns that ``condition_template`` adds before the first line of a condition."""
    return 0 if condition_template(text) == text else CONDITION_SHIFT


def condition_template(text: str) -> str:
    """A condition as a template: written with braces it is one; without, it is an expression."""
    return text if "{{" in text or "{%" in text else "{{ " + text + " }}"


def truth(text: str) -> bool:
    """Returns whether a rendered condition holds: false, empty, 0, "false", "no" and "none" do not."""
    return text.strip().lower() not in _FALSE


def plain(value: Any) -> Any:
    """A copy with plain JSON types only, so that a template touches none of our objects; a checked text keeps its
    value.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, CheckedText):
        return CheckedText(str(value), plain(value.value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | int | float):
        return float(value) if isinstance(value, float) else int(value)
    return str(value)


@lru_cache(maxsize=512)
def outline(template: str) -> Outline:
    """Read a template. Raises TemplateFault if its syntax is wrong."""
    with _told(template):
        tree = SANDBOX.parse(template)
        return Outline(frozenset(find_undeclared_variables(tree)), all(map(_inserts, tree.find_all(nodes.Node))))


_INSERTING = (nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Const)


def _inserts(node: nodes.Node) -> bool:
    return isinstance(node, _INSERTING) or (isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const))


@lru_cache(maxsize=512)
def _compiled(template: str) -> tuple[Template, frozenset[str]]:
    with _told(template):
        tree = SANDBOX.parse(template)
        return SANDBOX.from_string(tree), frozenset(find_undeclared_variables(tree))


@contextmanager
def _told(template: str) -> Iterator[None]:
    """Turns a syntax error of a template into a TemplateFault."""
    try:
        yield
    except TemplateSyntaxError as fault:
        raise syntax_fault(fault, template) from None
    except RecursionError:
        raise TemplateFault("it is nested too deeply") from None


def _streamed(compiled: Template, names: dict[str, Any]) -> str:
    pieces: list[str] = []
    size = 0
    for piece in compiled.root_render_func(compiled.new_context(names)):
        pieces.append(str(piece))
        size += len(pieces[-1])
        if size > MAX_OUTPUT:
            raise LimitReached("the output is larger than 1 MB")
    return "".join(pieces)


def _placed(
    message: str, trace: TracebackType | None, compiled: Template, template: str, begun: tuple[int, int]
) -> TemplateFault:
    """A fault with the line that ran last, and there the expression that was begun last, else the first tag."""
    line = 1
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is compiled or "__jinja_template__" in (
            trace.tb_frame.f_globals
        ):
            line = compiled.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return TemplateFault(message, line, begun[1] if begun[0] == line else first_tag(template, line))
