"""Journals on disk, one folder a run; and chDB as an index over them that can be rebuilt at any time."""
