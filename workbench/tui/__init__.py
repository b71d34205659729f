"""The Textual app: a view of journals, and keys that drive the engine."""
