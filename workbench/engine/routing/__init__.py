"""Ways through a DOT pipeline: what a phase comes to, and which edge is taken then. Pure."""
