"""Validation of the measurement: knobs, doses, power, admissibility."""
