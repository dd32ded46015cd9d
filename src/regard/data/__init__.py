"""From files on disk to batches, at any size, losing nothing."""
