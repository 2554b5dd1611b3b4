"""What a profile measures on its models: received attention and MLP activations, over all problems, as tables."""
