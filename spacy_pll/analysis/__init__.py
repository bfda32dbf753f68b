"""What people look at: comparisons, candidates in context, data frames, pictures."""
