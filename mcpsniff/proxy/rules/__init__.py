"""What changes messages without code: options and a file of rules, each a filter expression and an action."""
