"""Settings that all tests share."""

from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("default")
