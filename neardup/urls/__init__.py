"""What URLs and hosts say before anything is fetched."""
