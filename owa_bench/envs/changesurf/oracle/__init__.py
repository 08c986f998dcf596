"""Answer key: quality, next steps, walks."""
