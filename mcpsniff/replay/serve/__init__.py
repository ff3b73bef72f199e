"""As the server: scenes played on cue to live clients, over pipes here and over HTTP in `web`."""
