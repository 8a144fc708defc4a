"""Writes the pages of docs/reference that say what the code says: `python -m docs.generator`.

The pages are committed, so that they can be read where the repository is shown; a test finds stale ones.
"""
