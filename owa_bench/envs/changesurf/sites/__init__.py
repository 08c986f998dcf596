"""The sites: each module exports `SITE`, a declaration of `site_schema`."""
