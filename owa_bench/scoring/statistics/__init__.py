"""Statistics: resampling, distributions, slopes, intervals without one cluster each."""
