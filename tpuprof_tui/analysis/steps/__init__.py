"""Steps of a run: as its source tells them, or found as sequences of launches that repeat; figures of each."""
