"""A corpus of event logs of real streaming queries, with labels that say which fault was injected when."""
