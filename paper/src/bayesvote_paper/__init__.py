"""The tables and figures of the paper, and those that go beyond them."""
