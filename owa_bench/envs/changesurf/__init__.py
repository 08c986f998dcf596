"""ChangeSurf: a real browser on sites that change."""
