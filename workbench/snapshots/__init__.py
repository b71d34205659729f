"""Frozen runs: recordings with what they must show."""
