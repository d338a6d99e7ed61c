"""`make verify-deploy`: deploy a throw-away stage, try it, report, and leave nothing behind."""
