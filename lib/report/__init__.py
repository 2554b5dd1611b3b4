"""A profile's claims, figures, heads and answers as one HTML page."""
