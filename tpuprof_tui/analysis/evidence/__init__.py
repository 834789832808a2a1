"""Evidence of findings: longest events, pauses and their story, peers, problems; the rules are in views."""
