"""Who may do what: roles, tokens, logins, and the log of what was done."""
