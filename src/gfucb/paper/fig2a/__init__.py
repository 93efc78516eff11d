"""fig2a."""
