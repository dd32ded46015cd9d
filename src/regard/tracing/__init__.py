"""What was computed: any PyTorch computation as a derivation, down to each number."""

from regard.tracing.labels import active, label

__all__ = ["active", "label"]
