/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * explain.c - makes the one line that tells a person what failed, why, and how to fix it.
 *
 * The device answers a failed registration with ENOMEM and no details. In most cases the
 * cause is the limit on locked memory: so the line names the size that was asked for and the
 * present limit.
 */
#include "fabric/verbs/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"

#undef rbx_verbs_explain
int rbx_verbs_explain(char *error, int code, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(error, RBX_ERROR_TEXT_MAX, format, args);
		va_end(args);
	}
	return code;
}

const char *rbx_verbs_format_size(uint64_t size_bytes,
				  char text[RBX_VERBS_SIZE_TEXT_MAX])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB",
					     "TiB" };
	unsigned int unit = 0;

	if (size_bytes == UINT64_MAX) {
		snprintf(text, RBX_VERBS_SIZE_TEXT_MAX, "unlimited");
		return text;
	}
	while (unit < 4 && size_bytes && size_bytes % 1024 == 0) {
		size_bytes /= 1024;
		unit++;
	}
	snprintf(text, RBX_VERBS_SIZE_TEXT_MAX, "%" PRIu64 " %s", size_bytes,
		 units[unit]);
	return text;
}

int rbx_verbs_explain_pin(char *error, int code, uint64_t length_bytes,
			  uint64_t memlock_limit_bytes)
{
	char length[RBX_VERBS_SIZE_TEXT_MAX];
	char limit[RBX_VERBS_SIZE_TEXT_MAX];

	rbx_verbs_format_size(length_bytes, length);
	rbx_verbs_format_size(memlock_limit_bytes, limit);
	if (code == -EFAULT)
		return rbx_verbs_explain(error, code,
			"cannot pin %s: not all of it is mapped, or it is "
			"mapped without the rights asked for; map it readable "
			"and writable first", length);
	if (code == -ENOMEM && memlock_limit_bytes != UINT64_MAX)
		return rbx_verbs_explain(error, code,
			"cannot pin %s: RLIMIT_MEMLOCK is %s; raise it with "
			"`ulimit -l unlimited`, in /etc/security/limits.conf "
			"or by LimitMEMLOCK=infinity in the systemd unit",
			length, limit);
	if (code == -ENOMEM)
		return rbx_verbs_explain(error, code,
			"cannot pin %s: out of memory or of the device's "
			"translation entries; register less, or use huge pages",
			length);
	return rbx_verbs_explain(error, code, "cannot register %s: %s", length,
				 strerror(-code));
}
