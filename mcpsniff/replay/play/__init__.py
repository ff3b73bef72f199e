"""On the screen: the annotated conversation as it went, with pause, step and jump to the next finding."""
