"""ProjForge: a software project of thirty days, real or as a graph of contracts."""
