# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of the fio engine share, besides servers (../cli/rdmabox.sh): fio with the
# engine that was built. What fio writes it verifies by checksums of its own.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/rdmabox.sh"

engine=$build/fio/rdmabox.so
command -v fio >/dev/null || { echo "SKIP: fio is not installed"; exit 77; }
[ -e "$engine" ] || { echo "SKIP: no engine in this build; see fio/README.md"; exit 77; }

# fio_run ARGUMENT... - a fio with the engine; sets status, and leaves $scratch/out and err
fio_run()
{
	# It leaves files where it runs.
	(cd "$scratch" && exec timeout "$limit_s" "${preload[@]}" fio --ioengine="external:$engine" "$@" \
		>"$scratch/out" 2>"$scratch/err")
	status=$?
}

# expect_good ARGUMENT... - it verifies all, without a word
expect_good()
{
	fio_run "$@"
	[ "$status" = 0 ] || { show; fault "fio $*: exit code $status"; }
	[ ! -s "$scratch/err" ] || { show; fault "fio $*: writes to stderr"; }
}

# expect_bad PATTERN ARGUMENT... - it fails, and says so
expect_bad()
{
	local pattern=$1

	shift
	fio_run "$@"
	[ "$status" != 0 ] || { show; fault "fio $*: succeeds"; }
	[ "$status" != 124 ] || { show; fault "fio $*: hangs"; }
	grep -qE -- "$pattern" "$scratch/err" "$scratch/out" ||
		{ show; fault "fio $*: does not say $pattern"; }
}
