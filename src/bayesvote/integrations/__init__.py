"""Learners of other libraries: import ``bayesvote.integrations.river`` or ``bayesvote.integrations.capymoa``."""
