"""One model call: forecast, sent, retried, journaled."""
