"""The tables and figures of the paper, and further experiments."""
