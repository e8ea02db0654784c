"""Random faults for an application that `homeostat run` has started, and their results."""
