"""A whole job: a graph, a model, a task, the training, and the folder that holds the result."""
