"""Text and file formats: units, escaping, tables, workbooks, traces; independent of the meaning of profiles."""
