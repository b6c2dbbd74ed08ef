"""What was found: runs read back, resegmented, scored, tabled and drawn."""
