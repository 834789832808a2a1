"""Lets every test directory import the shared builders beside this file (``from profiles import ...``)."""
