"""What is asked of a language model, in the order in which it happens: wordpieces, windows, masking, plan."""
