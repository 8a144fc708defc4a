"""Witnesses of the trail's digests: places that keep them out of the reach of this machine."""
