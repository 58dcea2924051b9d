"""The commands: one module each, with its options and the checks before its work.

The modules that do the work are imported when a command is called, so that ``--help`` is fast.
"""
