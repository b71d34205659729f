"""Forms for people: what may stand in one, how one is made from a question, and how its answers are read."""
