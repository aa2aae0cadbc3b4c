"""Laws that need no pass of a network, a module for each subject, from `roofline` to `cost`."""
