"""The laboratory: experiment source, faults, ledger, demonstration and benches. It is not part of the product."""
