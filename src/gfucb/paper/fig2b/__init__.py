"""fig2b."""
