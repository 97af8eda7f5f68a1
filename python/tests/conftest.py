"""Settings of all tests: the same examples in every run, and no limit on the time of one."""

from hypothesis import settings

settings.register_profile("here", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("here")
