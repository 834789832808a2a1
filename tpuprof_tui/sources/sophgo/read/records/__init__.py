"""Monitor records of the hardware: parsing, ordering, unwrapping and time alignment."""
