"""What was seen, kept: the records of a capture file, their writer, reader and store."""
