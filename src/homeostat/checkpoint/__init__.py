"""Tools on the checkpoint of a streaming query: read, check, save, restore and rescale its state."""
