"""A capture as something else: made shareable."""
