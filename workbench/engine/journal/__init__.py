"""The journal of a run: its events, its writer, and the one fold that reads it."""
