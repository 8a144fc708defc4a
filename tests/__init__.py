"""A package, so that `python -m tests...` finds these and not a library's `tests` among the installed packages."""
