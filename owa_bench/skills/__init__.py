"""What agents share: document reading, probing, calibration, memory."""
