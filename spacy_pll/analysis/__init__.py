"""Ways to look at scores: comparisons, candidates in context, data frames, HTML and figures."""
