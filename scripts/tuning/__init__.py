"""A masked language model whose scores in one forward pass (`mask_margin`) are nearer to its exact ones."""
