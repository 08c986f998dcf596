"""Order what runs low."""
