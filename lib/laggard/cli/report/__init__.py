"""`laggard report`: one HTML file."""
