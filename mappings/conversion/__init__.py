"""Conversion between MQRFH and MQRFH2 by the field-mapping table, and its report."""
