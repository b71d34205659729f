"""Tests of the snapshots: frozen runs, replayed."""
