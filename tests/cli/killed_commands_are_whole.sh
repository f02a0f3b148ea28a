#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each command that changes a volume, killed at its messages: the change has happened or has not, and
# the same command can be given again. With EVERY=1 at each message, which takes half a minute.

. "$(dirname "$0")/rdmabox.sh"

addresses=()
for _ in 1 2 3 4; do
	start_server --memory 64M --slab 1M --lease 5000
	addresses+=("$address")
done
python3 "$here/killed_commands_are_whole.py" "$rdmabox" "${EVERY:-12}" "${addresses[@]}" ||
	fault "a command that was killed leaves a half"
