"""Plain frozen data, with no behaviour beyond what their fields imply."""
