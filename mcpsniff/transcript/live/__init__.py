"""The live view: what is shown of sessions while they go on, line by line. No clock and no terminal in here."""
