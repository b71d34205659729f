"""What is observed of the real engine; each module is a process of its own, since one holds one engine."""
