"""Databases that Nsight Systems exports (``nsys export --type sqlite``)."""
