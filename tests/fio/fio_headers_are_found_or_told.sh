#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fio/headers prints where the headers are, and says why if it cannot get them; it leaves
# nothing behind that looks as if it had. Nothing is fetched here: apt-get is played.

. "$(dirname "$0")/fio.sh"

headers=$here/../../fio/headers

# expect_failure PATTERN ARGUMENT... - of fio/headers with an empty cache
expect_failure()
{
	local pattern=$1

	shift
	RDMABOX_FIO_DIR=$scratch/cache PATH=$scratch/bin:$PATH "$headers" "$@" \
		>"$scratch/out" 2>"$scratch/err"
	status=$?
	[ "$status" = 1 ] || { show; fault "fio/headers $*: exit code $status, not 1"; }
	[ ! -s "$scratch/out" ] || { show; fault "fio/headers $*: prints a directory"; }
	grep -qE -- "$pattern" "$scratch/err" || { show; fault "fio/headers $*: does not say $pattern"; }
	[ -z "$(ls -A "$scratch/cache" 2>/dev/null)" ] || fault "fio/headers $*: leaves files"
}

mkdir "$scratch/bin"
printf '#!/bin/sh\necho "E: no network" >&2\nexit 100\n' >"$scratch/bin/apt-get"
chmod +x "$scratch/bin/apt-get"
expect_failure 'no headers of .* here; fio/headers gets them' --find
expect_failure '(E: no network|no package of this system has)'
grep -q 'fio/headers --source DIR' "$scratch/err" || { show; fault "names no other way"; }
expect_failure 'no sources of fio' --source "$scratch/bin"
expect_failure 'cannot read' --source "$scratch/none"

# Sources of another version.
mkdir "$scratch/source"
: >"$scratch/source/fio.h"
printf '#!/bin/sh\n: >config-host.h\n' >"$scratch/source/configure"
printf 'echo "FIO_VERSION = fio-0.1" >FIO-VERSION-FILE\n' >"$scratch/source/FIO-VERSION-GEN"
chmod +x "$scratch/source/configure"
expect_failure 'sources are of fio-0.1, installed is fio-' --source "$scratch/source"

# Of the installed one.
printf 'echo "FIO_VERSION = %s" >FIO-VERSION-FILE\n' "$(fio --version)" \
	>"$scratch/source/FIO-VERSION-GEN"
found=$(RDMABOX_FIO_DIR=$scratch/cache "$headers" --source "$scratch/source") ||
	fault "does not take good sources"
[ -e "$found/fio.h" ] && [ -e "$found/config-host.h" ] && [ "$(cat "$found/version")" = \
	"$(fio --version)" ] || fault "$found: headers or version are missing"
[ "$(RDMABOX_FIO_DIR=$scratch/cache "$headers" --find)" = "$found" ] || fault "--find does not"
