"""The gateway: captures a database into the landing zone, its rows and meanwhile its changes."""
