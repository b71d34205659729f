"""Cascade text in, a validated definition or problems with their places out. Pure: opens no file."""
