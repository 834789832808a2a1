"""Files and figures of the published converter, reproduced exactly."""
