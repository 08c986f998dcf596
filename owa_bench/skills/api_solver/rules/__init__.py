"""One file, one family of goals a clerk can do; each exports `RULE`."""
