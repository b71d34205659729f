"""A batch of a workspace: its inputs read, its variants made, its runs driven, its results written."""
