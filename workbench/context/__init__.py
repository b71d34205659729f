"""What one model call sees, message by message, and why; its tokens, its cached prefix, its cost. Pure."""
