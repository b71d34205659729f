"""The collector rests as long as anything asks for it, and is afterwards as it was."""

from __future__ import annotations

import gc
from contextlib import ExitStack

import pytest

from workbench.collector import no_collection


def test_uses_that_overlap_end_with_the_last_one() -> None:
    assert gc.isenabled()
    first, second = ExitStack(), ExitStack()
    first.enter_context(no_collection())
    second.enter_context(no_collection())
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_a_fault_inside_leaves_it_on() -> None:
    with pytest.raises(ZeroDivisionError), no_collection():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
