"""Soundings: several executions side by side, checked, judged, and one winner."""
