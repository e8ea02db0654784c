"""The simulator: two engines in virtual time, scenarios, and the fit to a recorded run."""
