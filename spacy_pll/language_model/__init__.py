"""What answers: language models of Hugging Face transformers, loaded, checked and run."""
