"""``dataclass``, of which all but the class itself is made when someone looks for it: most of a program's classes make
no object in one process, and fields and methods of 200 took a quarter of the time in which a program loads."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Any:
        """What ``dataclasses.dataclass`` gives, with these of its options, for classes whose bases come from here."""

        def made(given: type) -> type:
            return _made(given, frozen=frozen, slots=slots, eq=eq, kw_only=kw_only)

        return made if cls is None else made(cls)


def _made(given: type, *, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    own = given.__dict__
    written = _Written(given, kw_only)
    if not own.get("__doc__"):
        given.__doc__ = given.__name__  # Else the signature is asked for, and with it what is not compiled yet.
    cls = _slotted(given, written) if slots else given
    if not slots:
        written.put_defaults(cls)
    added: dict[str, object] = {name: _Standard(cls, name) for name in _STANDARD if name not in own}
    for name, method in (added | _methods(cls, own, frozen=frozen, slots=slots, eq=eq)).items():
        setattr(cls, name, method)
    setattr(cls, _WRITTEN, written)
    return cls


class _Written:
    """The fields that stand in a class itself."""

    __slots__ = ("_fields", "by_name", "types", "values")

    def __init__(self, cls: type, by_name: bool) -> None:
        own = cls.__dict__
        self.types = {name: kind for name, kind in cls.__annotations__.items() if not _is_of_class(kind)}
        self.values = {name: own[name] for name in self.types if name in own}
        """Defaults, and what ``field`` says."""
        self.by_name = by_name
        self._fields: list[dataclasses.Field[Any]] | None = None

    @property
    def fields(self) -> list[dataclasses.Field[Any]]:
        if self._fields is None:
            self._fields = [self._field(name) for name in self.types]
        return self._fields

    def _field(self, name: str) -> dataclasses.Field[Any]:
        value = self.values.get(name, dataclasses.MISSING)
        made: dataclasses.Field[Any] = (
            value if isinstance(value, dataclasses.Field) else dataclasses.field(default=value)
        )
        made.name, made.type = name, self.types[name]
        if made.kw_only is dataclasses.MISSING:
            made.kw_only = self.by_name
        return made

    def put_defaults(self, cls: type) -> None:
        """What stands in the class for a field is its default, and nothing where it has none."""
        for name, value in self.values.items():
            if not isinstance(value, dataclasses.Field):
                continue
            if value.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)


_WRITTEN = "__dataclass_written__"
_OF_CLASS = re.compile(r"(?:\w+\.)?ClassVar\b")


def _is_of_class(kind: object) -> bool:
    """Whether an annotation says that something is the class's own, no field."""
    if isinstance(kind, str):
        return "ClassVar" in kind and _OF_CLASS.match(kind) is not None
    return kind is ClassVar or get_origin(kind) is ClassVar


def _fields(cls: type) -> list[dataclasses.Field[Any]]:
    """All fields, those of bases first."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__):
        if (written := base.__dict__.get(_WRITTEN)) is not None:
            found |= {field.name: field for field in written.fields}
    return [*found.values()]


def _slotted(given: type, written: _Written) -> type:
    """The class once more, with slots for the fields that no base has."""
    own = dict(given.__dict__)
    bases = [base.__dict__ for base in reversed(given.__mro__[1:])]
    inherited = [name for base in bases if _WRITTEN in base for name in base[_WRITTEN].types]
    names = dict.fromkeys([*inherited, *written.types])
    taken = {name for base in bases for name in base.get("__slots__", ())}
    own["__slots__"] = tuple(name for name in names if name not in taken)
    for name in (*names, "__dict__", "__weakref__"):
        own.pop(name, None)
    cls: type = type(given)(given.__name__, given.__bases__, own)
    cls.__qualname__ = given.__qualname__
    return cls


class _Standard:
    """Stands in for what the standard library keeps in a class, until it looks for it."""

    __slots__ = ("_cls", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._cls = cls
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = _STANDARD[self._name](self._cls)
        setattr(self._cls, self._name, value)
        return value


def _standard_fields(cls: Any) -> dict[str, dataclasses.Field[Any]]:
    inherited = [base.__dataclass_fields__ for base in reversed(cls.__mro__[1:]) if _WRITTEN in base.__dict__]
    return dict(item for fields in (*inherited, _twin(cls).__dataclass_fields__) for item in fields.items())


def _twin(cls: type) -> Any:
    """What the standard library makes of the fields that stand in a class."""
    written: _Written = cls.__dict__[_WRITTEN]
    own = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__annotations__": written.types, **written.values}
    return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=written.by_name)(type(cls.__name__, (), own))


def _match_args(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in _fields(cls) if field.init and not field.kw_only)


_STANDARD: dict[str, Callable[[type], Any]] = {
    "__dataclass_fields__": _standard_fields,
    "__dataclass_params__": lambda cls: _twin(cls).__dataclass_params__,
    "__match_args__": _match_args,
}


def _methods(cls: type, own: Mapping[str, object], *, frozen: bool, slots: bool, eq: bool) -> dict[str, object]:
    methods: dict[str, object] = {}
    if "__init__" not in own:
        methods["__init__"] = _Later(cls, "__init__", frozen)
    if "__repr__" not in own:
        methods["__repr__"] = _repr
    if eq and "__eq__" not in own:
        methods["__eq__"] = _Later(cls, "__eq__", frozen)
    # Python itself notes None beside an own __eq__; only what stands in the class beyond that is its own.
    if eq and ("__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)):
        methods["__hash__"] = _Later(cls, "__hash__", frozen) if frozen else None
    if frozen:
        methods |= {"__setattr__": _no_assignment, "__delattr__": _no_deletion}
        if slots and "__getstate__" not in own:
            methods |= {"__getstate__": _state, "__setstate__": _restore}
    return methods


class _Later:
    """Stands in for a method until someone looks for it."""

    __slots__ = ("_cls", "_frozen", "_name")

    def __init__(self, cls: type, name: str, frozen: bool) -> None:
        self._cls = cls
        self._name = name
        self._frozen = frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _COMPILERS[self._name](self._cls, self._frozen)
        method.__qualname__ = f"{self._cls.__qualname__}.{self._name}"
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _init(cls: Any, frozen: bool) -> Any:
    fields = _fields(cls)
    scope: dict[str, object] = {"_made": _UNSET}
    lines = ["_fields = self.__dict__"] if frozen and cls.__dictoffset__ else []
    for field in fields:
        value = _value(field, scope)
        if value:
            lines.append(_kept(cls, field.name, value, scope) if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    asked = [field for field in fields if field.init]
    by_name = [_parameter(field) for field in asked if field.kw_only]
    parameters = ["self", *(_parameter(field) for field in asked if not field.kw_only)]
    if by_name:
        parameters += ["*", *by_name]
    init = _compiled("__init__", parameters, lines or ["pass"], scope)
    init.__annotations__ = {field.name: field.type for field in asked} | {"return": None}
    return init


def _kept(cls: Any, name: str, value: str, scope: dict[str, object]) -> str:
    """Puts a value into a frozen object past its ``__setattr__``: that of ``object`` takes up to four times as long."""
    slot = getattr(cls, name, None)
    if not isinstance(slot, MemberDescriptorType):
        return f"_fields[{name!r}] = {value}"
    scope[f"_set_{name}"] = slot.__set__
    return f"_set_{name}(self, {value})"


def _parameter(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is dataclasses.MISSING else f"{field.name}=_made"


def _value(field: dataclasses.Field[Any], scope: dict[str, object]) -> str:
    """What a field gets, as an expression; empty for one that is left to the class."""
    name = field.name
    if field.default_factory is not dataclasses.MISSING:
        scope[f"_factory_{name}"] = field.default_factory
        return f"_factory_{name}() if {name} is _made else {name}" if field.init else f"_factory_{name}()"
    if field.default is not dataclasses.MISSING:
        scope[f"_default_{name}"] = field.default
        return name if field.init else f"_default_{name}"
    return name if field.init else ""


def _eq(cls: Any, _: bool) -> Any:
    def side(who: str) -> str:
        return "(" + "".join(f"{who}.{field.name}, " for field in _fields(cls) if field.compare) + ")"

    lines = ["if other.__class__ is not self.__class__:", " return NotImplemented"]
    return _compiled("__eq__", ["self", "other"], [*lines, f"return {side('self')} == {side('other')}"], {})


def _hash(cls: Any, _: bool) -> Any:
    used = [field for field in _fields(cls) if (field.compare if field.hash is None else field.hash)]
    values = "(" + "".join(f"self.{field.name}, " for field in used) + ")"
    return _compiled("__hash__", ["self"], [f"return hash({values})"], {})


def _compiled(name: str, parameters: list[str], lines: list[str], scope: dict[str, object]) -> Any:
    body = "\n ".join(lines)
    exec(f"def {name}({', '.join(parameters)}):\n {body}\n", scope)
    return scope[name]


_COMPILERS: dict[str, Callable[[Any, bool], Any]] = {"__init__": _init, "__eq__": _eq, "__hash__": _hash}
_UNSET = type("_UNSET", (), {"__repr__": lambda self: "<made anew>"})()


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in _fields(type(self)) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _no_assignment(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in _fields(type(self))]


def _restore(self: Any, state: list[object]) -> None:
    for field, value in zip(_fields(type(self)), state, strict=True):
        object.__setattr__(self, field.name, value)
