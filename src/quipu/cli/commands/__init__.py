"""One file per command; each defines its click command as `command`."""
