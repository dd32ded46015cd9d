"""How good a model is, honestly: scores, by length, side by side, and pictures of what it looked at."""
