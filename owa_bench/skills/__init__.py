"""Skills that agents share: document reading, probing, calibration, memory."""
