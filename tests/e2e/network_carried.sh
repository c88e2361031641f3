#!/bin/bash
# network_carried.sh - network.sh again, with pods that are reached through a child process: the same promises hold.
CARRIED=1
. "$(dirname "$0")/network.sh"
