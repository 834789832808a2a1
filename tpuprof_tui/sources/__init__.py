"""What is on disk becomes a profile: one package for each source, and the catalog that chooses one."""
