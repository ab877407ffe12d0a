"""Templates of the demo's questions: original wording, computed answers, invented names."""
