# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # what tests/cli/rdmabox.sh sets
#
# What the scripts verbs_*.sh share: the vocabulary of tests/cli/rdmabox.sh, with
# servers and clients on the RDMA device of the machine. Not executable, so that
# lab/guest/run-tests leaves it alone.
#
# Sizes are small: the machine is emulated and some 20 times slower than others.
# Times are only ever limits against hangs.

# shellcheck source=../cli/rdmabox.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../cli/rdmabox.sh" "${BUILD:-/build}"

device_address=10.9.0.1
limit_s=300 # a busy host makes the emulated machine slower still

# start_verbs_server OPTION... - sets address and pid
start_verbs_server()
{
	start_server --listen "$device_address:0" --fabric verbs --slab 1M "$@"
}

# key NAME - a number or a word of the JSON in $scratch/out. In the shell alone:
# a start of python takes a second here.
key()
{
	local json

	json=$(<"$scratch/out")
	[[ $json =~ \"$1\":\ \"?([^\",]*) ]] && echo "${BASH_REMATCH[1]}"
}

pass()
{
	echo "PASS $*"
}

# expect_sound NAME - the JSON in $scratch/out is of a run over verbs that had no
# errors and moved something
expect_sound()
{
	[ "$(key fabric)" = verbs ] || fault "$1: fabric is $(key fabric)"
	[ "$(key errors)" = 0 ] || fault "$1: $(key errors) errors"
	[ "$(key verify_errors)" = 0 ] || fault "$1: $(key verify_errors) wrong blocks"
	[ "$(key requests)" -gt 0 ] || fault "$1: no requests"
}

# in_memory NAME LIMIT MIB COMMAND... - in a memory control group whose memory.LIMIT that
# is. With max a program may be killed though it has swap: if that is slow, as all is
# here, the kernel sees no progress. With high it waits.
in_memory()
{
	local group=/sys/fs/cgroup/$1 limit=$2 mib=$3

	shift 3
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	# A new one: to what an earlier program has left in it the kernel holds on.
	[ ! -d "$group" ] || rmdir "$group" || fault "$group is in use"
	mkdir "$group"
	echo $((mib << 20)) >"$group/memory.$limit"
	# shellcheck disable=SC2016 # expanded there
	timeout "$limit_s" bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}
