"""Names for the images of a run: ``images/<session>/<phase>/image_<n>.<ext>`` in the store, links to the blobs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from workbench.engine.event import Event
from workbench.language.check import slug

ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


class Pictures:
    """Watches a run's events, and names each image that a tool returned (language.md 3.10).

    A candidate's images are named after it; numbers go on over the visits of a phase. Where the file system has no
    hard links the image is copied. What cannot be written is told to ``problem`` and changes nothing else.
    """

    def __init__(self, store: Path, blobs: Path, session_id: str, problem: Callable[[str], None]) -> None:
        self._folder = store / "images" / session_id
        self._blobs = blobs
        self._problem = problem
        self._count: Counter[tuple[str, str]] = Counter()

    def __call__(self, event: Event) -> None:
        """Take one event, after it is in the journal."""
        if event.kind != "tool_finished":
            return
        for image in event.data.get("images", ()):
            self._name(event, image["digest"], ENDINGS.get(image["media_type"], "bin"))

    def _name(self, event: Event, digest: str, ending: str) -> None:
        phase, branch = event.place.phase, event.place.branch
        self._count[phase, branch] += 1
        prefix = f"sounding_{branch.removeprefix('s')}_" if branch.startswith("s") else f"{branch}_" if branch else ""
        name = f"{prefix}image_{self._count[phase, branch]}.{ending}".replace("/", "-")
        target = self._folder / slug(phase) / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                os.link(self._blobs / digest, target)
            except OSError:
                shutil.copyfile(self._blobs / digest, target)
        except OSError as fault:
            self._problem(f"image {name} has no name in the store: {fault.strerror}")
