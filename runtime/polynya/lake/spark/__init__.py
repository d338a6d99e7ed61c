"""The Spark session and what it needs: Java, jars, class archive, catalog."""
