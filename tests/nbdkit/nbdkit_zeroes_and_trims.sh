#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Zeros are where they shall be and nowhere else, whether they are written or had by
# giving slabs back. Fast zeros are promised only if nothing is written for them. A trim
# gives whole slabs back, and there is none on a volume that would keep its memory.

. "$(dirname "$0")/nbdkit.sh"
need qemu-io

start_server --memory 64M --slab 1M

# io COMMAND... - of qemu-io, each must do what it says
io()
{
	local arguments=() command

	for command in "$@"; do
		arguments+=(-c "$command")
	done
	# It exits with 1 if a pattern differs or a request fails.
	good qemu-io -f raw "${arguments[@]}" "$uri"
}

# io_fails COMMAND
io_fails()
{
	! timeout "$limit_s" qemu-io -f raw -c "$1" "$uri" >"$scratch/out" 2>"$scratch/err" ||
		{ show; fault "qemu-io $1: succeeds"; }
}

# There are 16 slabs of 1 MiB; each range begins or ends within one.
unaligned_zeros()
{
	local option=$1

	io "write -P 0x5a 0 16M" \
		"write -z $option 1000 3145728" \
		"read -P 0x5a 0 1000" "read -P 0 1000 3145728" "read -P 0x5a 3146728 9436184" \
		"write -z $option 12583000 500" \
		"read -P 0x5a 8M 4194304" "read -P 0 12583000 500" "read -P 0x5a 12583500 4193716" \
		"write -z $option 15M 1M" "read -P 0 15M 1M" "read -P 0x5a 14M 1M"
}

# All memory is borrowed: zeros are written.
start_nbdkit "$address" size=16M
unaligned_zeros ""
unaligned_zeros -u
io_fails "write -zn 4M 1M"
io "read -P 0x5a 4M 1M"
[ "$(lent "$address")" = 16777216 ] || fault "a volume that keeps its memory gave some back"
stop_nbdkit

# On demand: with -u, which allows it, whole slabs go back.
start_nbdkit "$address" size=16M on-demand=true
[ "$(lent "$address")" = 0 ] || fault "on demand: something is borrowed already"
unaligned_zeros ""
[ "$(lent "$address")" = 16777216 ] || fault "on demand: memory went back that had to stay"
unaligned_zeros -u
[ "$(lent "$address")" -le 13631488 ] || fault "on demand: $(lent "$address") bytes still lent"
io "write -P 0x5a 0 16M" "write -zun 4M 2M" "read -P 0 4M 2M" "read -P 0x5a 3M 1M" \
	"read -P 0x5a 6M 1M"
io_fails "write -zun 8M 1000"
# With a whole slab in it, and a part before or behind it.
io_fails "write -zun 7344128 2093056"
io_fails "write -zun 8M 1052672"
io "read -P 0x5a 7M 3M"
io_fails "write -zn 8M 1M"
io "read -P 0x5a 8M 1M" "discard 8M 2M" "read -P 0 8M 2M" "read -P 0x5a 10M 1M" \
	"read -P 0x5a 7M 1M" "discard 11M 1000" "read -P 0x5a 11M 1M" "discard 0 16M" \
	"read -P 0 0 16M"
[ "$(lent "$address")" = 0 ] || fault "on demand: $(lent "$address") bytes lent after a trim"
