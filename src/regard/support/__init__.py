"""What several rooms need and none owns. Kept small; imports nothing of regard."""
