/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fabric_choice.c - chooses the fabric, see fabric_choice.h.
 *
 * The build defines RBX_HAVE_VERBS if libibverbs and librdmacm are there.
 */
#include "lib/fabric_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/loopback.h"

/* Asks the verbs fabric whether it has devices: 0, or -errno with the reason in error. */
static int verbs_probe(char *error)
{
#ifdef RBX_HAVE_VERBS
	return rbx_fabric_verbs.probe(error);
#else
	snprintf(error, RBX_ERROR_TEXT_MAX,
		 "this build has no verbs: install libibverbs-dev and "
		 "librdmacm-dev and build again");
	return -ENODEV;
#endif
}

static int choose_verbs(struct rbx_fabric_choice *choice, const char *why)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	int err = verbs_probe(error);

	if (err)
		return rbx_error(err, "verbs: %s", error);
#ifdef RBX_HAVE_VERBS
	choice->ops = &rbx_fabric_verbs;
#endif
	snprintf(choice->why, sizeof(choice->why), "verbs: %s", why);
	return 0;
}

static bool is_soft_device(const char *device)
{
	return device && !strcmp(device, RBX_SOFT_REGISTERED);
}

static int choose_soft(struct rbx_fabric_choice *choice, bool mapping,
		       const char *why)
{
	const char *device = choice->options.device_name;

	choice->options.needs_registration = is_soft_device(device);
	if ((device && !choice->options.needs_registration) ||
	    choice->options.gid_index >= 0)
		return rbx_error(-EINVAL,
				 "the soft fabric has no devices to choose from "
				 "but \"" RBX_SOFT_REGISTERED "\", and no gids; "
				 "leave them out, or take verbs");
	choice->ops = &rbx_fabric_soft;
	choice->options.same_host_mapping = mapping;
	snprintf(choice->why, sizeof(choice->why), "soft: %.*s",
		 (int)sizeof(choice->why) - 7, why);
	return 0;
}

/* No NIC can be reached at a loopback address. A text that is no address is refused
 * later, by the call that listens there. */
static bool is_loopback(const char *address)
{
	bool loopback;

	return address && !rbx_address_is_loopback(address, &loopback) &&
	       loopback;
}

static int choose_auto(struct rbx_fabric_choice *choice, const char *address)
{
	char error[RBX_ERROR_TEXT_MAX] = "";

	if (is_soft_device(choice->options.device_name))
		return choose_soft(choice, true, "a device of it was named");
	if (choice->options.device_name)
		return choose_verbs(choice, "a device was named");
	if (is_loopback(address))
		return choose_soft(choice, true,
				   "a loopback address, which no NIC serves");
	if (!verbs_probe(error))
		return choose_verbs(choice, "there is an RDMA device");
	error[strcspn(error, ":;")] = '\0'; /* the doctor says how to mend it */
	return choose_soft(choice, true, error);
}

int rbx_fabric_choose(const char *fabric, const char *device, int gid_index,
		      const char *address, struct rbx_fabric_choice *choice)
{
	memset(choice, 0, sizeof(*choice));
	choice->options.device_name = device && device[0] ? device : NULL;
	choice->options.gid_index = gid_index;
	if (!strcmp(fabric, "auto"))
		return choose_auto(choice, address);
	if (!strcmp(fabric, "verbs"))
		return choose_verbs(choice, "as asked");
	if (!strcmp(fabric, "soft"))
		return choose_soft(choice, true, "as asked");
	if (!strcmp(fabric, "soft:tcp"))
		return choose_soft(choice, false,
				   "as asked, without same-host mapping");
	return rbx_error(-EINVAL,
			 "unknown fabric \"%s\"; use auto, verbs, soft or "
			 "soft:tcp",
			 fabric);
}
