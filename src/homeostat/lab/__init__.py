"""The laboratory: an experiment source, faults, a ledger, the demonstration, the benches. No part of the product."""
