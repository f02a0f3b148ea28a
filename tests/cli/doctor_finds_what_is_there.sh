#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox doctor: this machine, and three that are made of files: one without
# device, one with a device that is well, one where much is wrong.

. "$(dirname "$0")/rdmabox.sh"

# finding NAME FIELD... - of the JSON in $scratch/out, a line for each
finding()
{
	python3 -c '
import json, sys
for check in json.load(open(sys.argv[1]))["checks"]:
    if check["name"] == sys.argv[2]:
        for field in sys.argv[3:]:
            print(check[field])
        break
else:
    sys.exit("no finding " + sys.argv[2])' "$scratch/out" "$@"
}

# expect_finding NAME STATUS [FIX]
expect_finding()
{
	local found fix

	found=$(finding "$1" status fix) || fault "$1 is not examined"
	fix=${found#*$'\n'}
	found=${found%%$'\n'*}
	[ "$found" = "$2" ] || { show; fault "$1 is $found, not $2: $(finding "$1" value)"; }
	grep -qE -- "${3:-.?}" <<<"$fix" || fault "$1: the fix is not $3"
}

# make_device ROOT STATE GID TYPE MTU
make_device()
{
	local port=$1/sys/class/infiniband/mlx5_0/ports/1

	mkdir -p "$port"/gids "$port"/gid_attrs/{types,ndevs} \
		"$1"/sys/class/net/eth0 "$1"/sys/devices/system/node "$1"/proc/self
	echo MT4123 >"$1/sys/class/infiniband/mlx5_0/hca_type"
	echo "$2" >"$port/state"
	echo "100 Gb/sec (4X EDR)" >"$port/rate"
	echo Ethernet >"$port/link_layer"
	echo 0000:0000:0000:0000:0000:0000:0000:0000 >"$port/gids/0"
	echo "$3" >"$port/gids/1"
	echo "$4" >"$port/gid_attrs/types/1"
	echo eth0 >"$port/gid_attrs/ndevs/0"
	echo "$5" >"$1/sys/class/net/eth0/mtu"
	echo 0-1 >"$1/sys/devices/system/node/online"
}

# This machine, whatever it has: every line has a known word, and the software
# device opens.
run doctor
grep -vqE '^(ok  |warn|fail)  |^ +fix: |^$|^[0-9]+ ok, [0-9]+ warn, [0-9]+ fail$' \
	"$scratch/out" && { show; fault "a line of another form"; }
run doctor --json
expect_finding 'soft fabric' ok
[ "$(key fail)" = 0 ] && [ "$status" != 0 ] && fault "nothing fails, exit code $status"
[ "$(key fail)" != 0 ] && [ "$status" != 1 ] && fault "something fails, exit code $status"

# The kernel of the tests has userfaultfd. A filter, as containers have it, refuses it.
expect_finding 'memory monitor' ok
python3 - "$rdmabox" >"$scratch/out" <<'EOF'
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
userfaultfd, eperm = 323 if os.uname().machine == "x86_64" else 282, 1
code = b"".join(struct.pack("HBBI", *line) for line in [
    (0x20, 0, 0, 0), (0x15, 0, 1, userfaultfd), (0x06, 0, 0, 0x50000 | eperm), (0x06, 0, 0, 0x7fff0000)])
lines = ctypes.create_string_buffer(code, len(code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(lines)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
    sys.exit("no filter: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], [sys.argv[1], "doctor", "--json"])
EOF
expect_finding 'memory monitor' warn 'allow the system call userfaultfd'

# No device: healthy.
mkdir -p "$scratch/none"
expect_success doctor --json --root "$scratch/none"
expect_finding devices warn 'rdma_rxe'
expect_finding memlock ok
expect_finding 'kernel modules' ok

# A device that is well. The library does not see it, so the verbs fabric fails.
well=$scratch/well
make_device "$well" "4: ACTIVE" 0000:0000:0000:0000:0000:ffff:0a00:0001 "RoCE v2" 9000
mkdir -p "$well"/sys/module/{ib_core,ib_uverbs,rdma_cm,rdma_ucm,mlx5_ib} \
	"$well"/sys/class/infiniband_verbs/uverbs0 "$well"/dev/infiniband
echo mlx5_0 >"$well/sys/class/infiniband_verbs/uverbs0/ibdev"
: >"$well/dev/infiniband/uverbs0"
printf 'CapEff:\t000001ffffffffff\n' >"$well/proc/self/status"
shmem=sys/kernel/mm/transparent_hugepage/shmem_enabled
mkdir -p "$well/${shmem%/*}"
echo 'always within_size [advise] never deny force' >"$well/$shmem"
run doctor --json --root "$well"
expect_finding mlx5_0 ok
expect_finding mlx5_0:1 ok
expect_finding 'mlx5_0:1 GIDs' ok
expect_finding 'mlx5_0:1 MTU' ok
expect_finding 'kernel modules' ok
expect_finding memlock ok
expect_finding 'huge pages' ok
finding 'mlx5_0:1 GIDs' value | grep -q '1 ::ffff:10.0.0.1 RoCE v2' || fault "wrong GID"
finding 'mlx5_0:1 MTU' value | grep -q '^4096 ' || fault "wrong MTU"
pool=sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages
mkdir -p "$well/${pool%/*}"
echo 512 >"$well/$pool"
run doctor --json --root "$well"
finding 'huge pages' value | grep -q '^512 of 2 MiB' || fault "huge pages are there, and not told"
finding NUMA value | grep -q 'numactl' || fault "two nodes and no advice"

# A device with a port that is down, an old GID, a small MTU, and no way to it.
ill=$scratch/ill
make_device "$ill" "1: DOWN" fe80:0000:0000:0000:0000:0000:0000:0001 "IB/RoCE v1" 1500
printf 'CapEff:\t0000000000000000\n' >"$ill/proc/self/status"
mkdir -p "$ill/${shmem%/*}"
echo 'always within_size advise [never] deny force' >"$ill/$shmem"
ulimit -l 64 || fault "cannot lower the limit of locked memory"
run doctor --json --root "$ill"
[ "$status" = 1 ] || fault "exit code $status, not 1"
expect_finding mlx5_0:1 warn 'ip link set'
expect_finding 'mlx5_0:1 GIDs' warn 'RoCE v2'
expect_finding 'mlx5_0:1 MTU' warn 'mtu 4200'
finding 'mlx5_0:1 MTU' value | grep -q '^1024 ' || fault "wrong MTU"
expect_finding ports fail
expect_finding 'kernel modules' fail 'modprobe .*ib_uverbs'
expect_finding memlock fail 'ulimit -l'
expect_finding 'huge pages' warn 'echo advise'
