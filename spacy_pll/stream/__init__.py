"""From texts to scored docs: what is scored, in order, in batches, in processes."""
