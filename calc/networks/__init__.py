"""What a pass of a network computes and moves, a module for each kind of network."""
