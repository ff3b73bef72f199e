"""Ways onto the wire: note what passes, forward it, never harm it."""
