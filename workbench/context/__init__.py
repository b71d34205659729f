"""The context of one model call, message by message, with reasons; its tokens, its cached prefix, its cost. Pure."""
