"""Writer of Excel workbooks."""
