"""The Model port: litellm, the offline model, and the tables of prices and encodings."""
