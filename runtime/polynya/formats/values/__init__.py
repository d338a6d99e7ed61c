"""From records to typed columns: exact values, order, settled types."""
