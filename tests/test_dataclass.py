"""Our dataclasses are those of the standard library, made later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from workbench.dataclass import dataclass

Make = Callable[..., Any]


def plain(decorate: Make) -> Any:
    @decorate
    class Plain:
        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"
        d: int = field(default=4, repr=False, compare=False)
        e: int = field(init=False, default=5)
        f: list[int] = field(init=False, default_factory=list)
        g: int = field(kw_only=True, default=7)
        h: ClassVar[int] = 8

        def __post_init__(self) -> None:
            self.e += self.a

    return Plain


def frozen(decorate: Make) -> Any:
    @decorate(frozen=True)
    class Base:
        a: int

    @decorate(frozen=True, slots=True)
    class Frozen(Base):
        """With words of its own."""

        b: tuple[int, ...] = ()
        c: list[int] = field(default_factory=list, hash=False)

    return Frozen


def own(decorate: Make) -> Any:
    @decorate(frozen=True, kw_only=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    return Own


def made_by_hand(decorate: Make) -> Any:
    @decorate(slots=True)
    class ByHand:
        a: int
        b: tuple[int, ...]

        def __init__(self, a: int, b: tuple[int, ...] = ()) -> None:
            self.a, self.b = a + 1, b

    return ByHand


CASES = [
    (made_by_hand, (1,), {}),
    (plain, (1,), {}),
    (plain, (1, [2]), {"g": 3}),
    (frozen, (1, (2,)), {}),
    (own, (), {"a": 1}),
]


def seen(cls: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[object]:
    """All that can be seen of a class and an object of it."""
    made, again, other = cls(*arguments, **named), cls(*arguments, **named), cls(**{**named, "a": 9})
    changed = dataclasses.replace(made, a=9)
    try:
        hashes: object = (hash(made) == hash(again), hash(made) == hash(other))
    except TypeError as fault:
        hashes = str(fault)
    return [
        repr(made),
        made == again,
        made == other,
        made == object(),
        hashes,
        dataclasses.asdict(made),
        repr(changed),
        made.b is again.b if hasattr(made, "b") else None,
        list(inspect.signature(cls).parameters),
        cls.__match_args__,
        copy.deepcopy(made) == made,
        hasattr(made, "__dict__"),
        repr(dataclasses.fields(cls)),
        [hasattr(cls, name) for name in "abcdefgh"],
        cls.__init__.__qualname__,
    ]


@pytest.mark.parametrize(("case", "arguments", "named"), CASES)
def test_they_do_what_those_of_the_standard_library_do(
    case: Callable[[Make], Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert seen(case(dataclass), arguments, named) == seen(case(dataclasses.dataclass), arguments, named)


@pytest.mark.parametrize("decorate", [dataclass, dataclasses.dataclass])
def test_what_is_frozen_takes_no_assignment(decorate: Make) -> None:
    made = frozen(decorate)(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'b'"):
        made.b = (1,)
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'b'"):
        del made.b


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5), (1, (), [], "more")])
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="__init__"):
        frozen(dataclass)(*arguments)


@dataclass(frozen=True, slots=True)
class Pickled:
    a: int
    b: str = "b"


def test_frozen_ones_with_slots_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1))) == Pickled(1, "b")


def test_a_class_is_compiled_when_its_first_object_is_made() -> None:
    cls = frozen(dataclass)
    assert not inspect.isfunction(vars(cls)["__init__"])
    cls(1)
    assert inspect.isfunction(vars(cls)["__init__"])
    assert not inspect.isfunction(vars(cls)["__hash__"])


def test_the_fields_of_a_class_are_made_when_someone_asks_for_them() -> None:
    cls = frozen(dataclass)
    cls(1)
    assert not isinstance(vars(cls)["__dataclass_fields__"], dict)
    assert [one.name for one in dataclasses.fields(cls)] == ["a", "b", "c"]
    assert isinstance(vars(cls)["__dataclass_fields__"], dict)


def test_one_that_holds_itself_can_be_shown() -> None:
    made = plain(dataclass)(1)
    made.b.append(made)
    assert "b=[...]" in repr(made)
