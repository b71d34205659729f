"""A file that is replaced is the old one or the new one, with its permissions, behind its link."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from workbench.files import replacing, write_whole


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    write_whole(link, b"new")
    assert (real.read_bytes(), _mode(real), link.is_symlink()) == (b"new", 0o640, True)


def test_a_new_file_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    write_whole(tmp_path / "shown", b"1")
    write_whole(tmp_path / "own", b"1", 0o600)
    assert [_mode(tmp_path / name) for name in ("shown", "own")] == [0o644, 0o600]


def test_what_fails_half_way_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")

    def interrupted() -> None:
        with replacing(tmp_path / "kept") as fresh:
            fresh.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("kept", b"old")]
