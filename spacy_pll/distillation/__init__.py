"""Students of masked language models, which give the teacher's scores in one forward pass per text, or in a few."""
