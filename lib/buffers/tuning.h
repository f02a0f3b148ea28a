/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tuning.h - the tuning file: what rdmabox-tune(1) measured on each device.
 *
 * It is a JSON file with an entry for each device:
 *
 *	{ "version": 1,
 *	  "devices": {
 *	    "verbs rxe0:1": { "break_even_bytes": 950272, "queue_pairs": 2 } } }
 *
 * break_even_bytes is null if copying is cheaper at any length. A value that was not
 * measured is left out.
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
 * Reads what a file says about a device. path: "" for the default file, "none" for no
 * file. Unknown values are 0. A bad file is no failure: the note tells what is wrong with
 * it.
 */
void rbx_tuning_load(const char *path, const struct rbx_device *device,
		     struct rbx_tuning *tuning,
		     char note[RBX_TUNING_NOTE_BYTES]);

#endif
