"""Models as they are read: folders, the hub, checkpoints and their checks, tokenizers."""
