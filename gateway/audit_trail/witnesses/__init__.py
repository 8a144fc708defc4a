"""Witnesses of the trail's digests: whoever else keeps them, out of the reach of this machine."""
