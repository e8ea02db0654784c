"""Random faults for an application that `homeostat run` has started, and what came of them."""
