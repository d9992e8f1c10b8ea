"""One file a command; each offers its click command as `command`."""
