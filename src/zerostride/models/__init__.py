"""Floor 5: model files read into a neutral graph, and what is made of it."""
