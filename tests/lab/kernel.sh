# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts kernel_*.sh share: the vocabulary of verbs.sh, with the modules
# that tests/kernel/modules_build.sh has left. Not executable, so that
# lab/guest/run-tests leaves it alone.

# shellcheck source=verbs.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/verbs.sh"

case $(uname -r) in
6.1.*) modules=$build/modules-6.1 ;;
6.12.*) modules=$build/modules-6.12 ;;
*) fault "no modules for kernel $(uname -r)" ;;
esac

# load_module NAME PARAMETER... - and what it needs of the kernel
load_module()
{
	local name=$1 needed

	shift
	needed=$(modinfo -F depends "$modules/$name.ko" | tr ',' '\n' | grep -v '^rdmabox')
	# shellcheck disable=SC2086 # words
	modprobe -a $needed hmac sha256 || fault "modprobe $needed"
	insmod "$modules/$name.ko" "$@" || { dmesg | tail -n 20; fault "insmod $name.ko $*"; }
}
