#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What is copied to a volume through NBD comes back byte for byte, over many connections
# and with two replicas; and what has never been written is zeros.

. "$(dirname "$0")/nbdkit.sh"
need nbdcopy nbdinfo qemu-img

start_server --memory 128M --slab 4M
one=$address
start_server --memory 128M --slab 4M
two=$address
head -c 64M /dev/urandom >"$scratch/image"
head -c 64M /dev/zero >"$scratch/zeros"

start_nbdkit "$one,$two" size=64M replicas=2
good nbdinfo "$uri"
for wanted in 'export-size: 67108864' \
	'can_multi_conn: true' 'can_flush: true' 'can_fua: true' 'can_trim: false' \
	'can_cache: false' 'can_zero: true' 'is_rotational: false' 'block_size_minimum: 1$' \
	'block_size_preferred: 4096'; do
	grep -q "$wanted" "$scratch/out" || { show; fault "nbdinfo does not say $wanted"; }
done
# Where the memory is is no business of a client of NBD.
! grep -qF -e "$one" -e "$two" "$scratch/out" || { show; fault "a client is told the servers"; }

good qemu-img compare -f raw -F raw "$uri" "$scratch/zeros"
good nbdcopy --connections=4 --requests=16 "$scratch/image" "$uri"
good nbdcopy --connections=4 --requests=16 "$uri" "$scratch/back"
cmp "$scratch/image" "$scratch/back" || fault "nbdcopy brings something else back"
good qemu-img compare -f raw -F raw "$scratch/image" "$uri"
! timeout "$limit_s" qemu-img compare -f raw -F raw "$scratch/zeros" "$uri" >"$scratch/out" ||
	fault "qemu-img finds no difference where there is one"

# Another image over it, by another program.
tac --separator=a "$scratch/image" >"$scratch/other"
truncate -s 64M "$scratch/other"
good qemu-img convert -n -f raw -O raw "$scratch/other" "$uri"
good nbdcopy "$uri" "$scratch/back"
cmp "$scratch/other" "$scratch/back" || fault "qemu-img has written something else"

[ "$(lent "$one")" = 67108864 ] && [ "$(lent "$two")" = 67108864 ] ||
	fault "not each server has a replica"
stop_nbdkit
[ "$status" = 0 ] || fault "nbdkit: exit code $status"
[ "$(lent "$one")" = 0 ] && [ "$(lent "$two")" = 0 ] || fault "memory is still lent"

# With checksums: blocks of 4 KiB are the least, and the same comes back.
start_nbdkit servers="$one,$two" size=64M checksums=true mode=doorbell window=1M pollers=2
good nbdinfo "$uri"
grep -q 'block_size_minimum: 4096$' "$scratch/out" || { show; fault "wrong least block"; }
good nbdcopy "$scratch/image" "$uri"
good qemu-img compare -f raw -F raw "$scratch/image" "$uri"
