"""The models as learners of other libraries: import the module of that name, ``river`` or ``capymoa``."""
