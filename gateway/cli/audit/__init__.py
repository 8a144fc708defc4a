"""The commands `rfhbridge audit ...`."""
