"""The page of a report and the site of a run."""
