"""Roll receipts of many currencies up into one."""
