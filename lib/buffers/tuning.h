/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning.h - what rdmabox-tune(1) found out about a device, remembered.
 *
 * A JSON file, by device:
 *
 *	{ "version": 1,
 *	  "devices": {
 *	    "verbs rxe0:1": { "break_even_bytes": 950272, "queue_pairs": 2 } } }
 *
 * break_even_bytes is null where copying is cheaper at any length; what was not
 * found out is left out.
 */
#ifndef RBX_LIB_TUNING_H
#define RBX_LIB_TUNING_H

#include "fabric/fabric.h"
#include "include/rdmabox/tuning.h"

#define RBX_TUNING_KEY_BYTES (RBX_NAME_MAX + 16)
#define RBX_TUNING_NOTE_BYTES 512

/* "verbs rxe0:1": the fabric and the device. */
void rbx_tuning_key(const struct rbx_device *device,
		    char key[RBX_TUNING_KEY_BYTES]);

/*
 * Reads what a file says of a device: path, "" for the default one, "none" for
 * nothing. Fields that are not known are 0. Whatever is wrong with the file is
 * told in the note, and is no failure.
 */
void rbx_tuning_load(const char *path, const struct rbx_device *device,
		     struct rbx_tuning *tuning,
		     char note[RBX_TUNING_NOTE_BYTES]);

#endif
