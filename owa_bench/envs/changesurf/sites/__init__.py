"""The sites: each file exports `SITE`, its words and what it draws."""
