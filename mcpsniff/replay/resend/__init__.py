"""One recorded request again: sent to a live server, changed if wanted, or printed as a command."""
