"""The newcomer's way: what somebody does with Polynya on the first days, from the commands only.

`python -m tests.newcomer --help`. The parts are the pages' commands, a feed of three tables, files
that keep landing while a run goes on (without and with kills), and machines that are broken. Each
part ends in checks, and what is in the tables is compared with a fold that has nothing of ours.
"""
