#!/usr/bin/env bash
# Stands in for the boot of a node: the templates only have to carry it.
set -euo pipefail
systemctl enable --now polynya-agent
