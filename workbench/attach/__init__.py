"""Watches the model calls of any program: a proxy on this machine, and the recorder that makes a run of its traffic."""
