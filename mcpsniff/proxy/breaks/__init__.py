"""Break points: messages that a person looks at, changes, passes, drops or answers."""
