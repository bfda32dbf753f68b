"""Models as they run: forward passes, their attention, and trials of what an architecture allows."""
