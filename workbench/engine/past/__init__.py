"""Runs that take answers from a recording: replay, resume, pins and forks."""
