// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Has ASan begin before anything else does, in a program that loads it by LD_PRELOAD.
 *
 * ASan begins at the first malloc(), and asks dlerror() then, which translates its text
 * and so takes the lock of the locale. libp11-kit, which fio and nbdkit load, calls
 * malloc() within newlocale(), that is with this lock held: the lock is broken from then
 * on, and the program hangs at its end. So this is loaded as well, linked with
 * -z initfirst: the loader runs its constructor before those of all others.
 */
#include <stdlib.h>

static __attribute__((constructor)) void begin(void)
{
	void *volatile memory = malloc(1);

	free(memory);
}
