"""From a corpus to a model folder: `regard train CONFIG`."""
