"""Text as tokens, tokens as numbers, words as vectors."""
