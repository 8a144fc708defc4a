"""The command `rfhbridge simulate`: sensors that publish and subscribe, and their counts."""
