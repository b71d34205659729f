"""The parts of strategies, one subject each; ``catalogue`` lists them."""
