"""Templates of untrusted folders: rendered in a process of their own, under limits of the kernel."""
