#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Several connections read and write at once, each with many requests outstanding, and
# each finds what it wrote; also when a server dies meanwhile and there is a replica.

. "$(dirname "$0")/nbdkit.sh"
needs_fio_nbd

start_server --memory 96M --slab 4M
one=$address
victim=$pid
start_server --memory 96M --slab 4M
two=$address

start_nbdkit "$one,$two" size=64M replicas=2
fio_nbd --size=16M --offset_increment=16M --numjobs=4 --bs=4k --rw=randrw --iodepth=16 ||
	{ show; fault "four jobs: exit code $?"; }
fio_nbd --size=64M --bsrange=512-256k --rw=randwrite --iodepth=16 --fsync=20 ||
	{ show; fault "blocks of all sizes: exit code $?"; }

fio_nbd --size=16M --bs=4k --rw=randrw --iodepth=16 --rate_iops=1000,1000 &
load=$!
server_pids+=("$load")
sleep 1
kill -0 "$load" || { show; fault "the load is over before the server dies"; }
kill -KILL "$victim"
wait "$load"
status=$?
[ "$status" = 0 ] || { show; fault "a server died: exit code $status"; }
grep -qE 'issued rwts: total=4096,[1-9]' "$scratch/out" || { show; fault "not all was read"; }
grep -q "server down $one" "$nbdkit_log" || { cat "$nbdkit_log"; fault "nobody tells of it"; }
stop_nbdkit
[ "$status" = 0 ] || fault "nbdkit: exit code $status"

# Without a replica there is an error in place of junk.
start_server --memory 96M --slab 4M
one=$address
victim=$pid
start_nbdkit "$one,$two" size=64M peer-timeout=1000
fio_nbd --size=16M --bs=4k --rw=randwrite --iodepth=16 --do_verify=0 ||
	{ show; fault "exit code $?"; }
kill -KILL "$victim"
# All of it: what lies on the other server is good.
fio_nbd --size=64M --bs=64k --rw=read --verify=0 && { show; fault "a server died: no error"; }
grep -qE 'read: .*(lost|replica|server)' "$nbdkit_log" || { cat "$nbdkit_log"; fault "no cause"; }
