/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RDMA devices: what the kernel shows of them in /sys/class/infiniband.
 *
 *	DEVICE/fw_ver, hca_type		what it is
 *	DEVICE/device/numa_node		near which memory (a real one)
 *	DEVICE/ports/N/state, rate	"4: ACTIVE", "100 Gb/sec (4X EDR)"
 *	DEVICE/ports/N/link_layer	Ethernet (RoCE, iWARP) or InfiniBand
 *	DEVICE/ports/N/gids/I		all zero if the slot is empty
 *	DEVICE/ports/N/gid_attrs/	types/I "RoCE v2", ndevs/I "eth0"
 *
 * The MTU of a RoCE port is the largest step that fits, with the headers, into the MTU of
 * its network interface. Only the device library knows that of an InfiniBand port, and
 * whether there is on-demand paging (ODP). So ibv_devinfo is asked if it is installed.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

#define GIDS_MAX 256

/* Routing, UDP and transport headers of the longest RoCE packet. */
#define ROCE_HEADER_BYTES (40 + 8 + 12 + 4 + 28 + 4)

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void list_devices(struct doctor *doctor)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	doctor_path(doctor, path, "/sys/class/infiniband");
	dir = opendir(path);
	if (!dir)
		return;
	while (doctor->devices_count < DOCTOR_DEVICES_MAX &&
	       (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < 64)
			strcpy(doctor->devices[doctor->devices_count++],
			       entry->d_name);
	closedir(dir);
	qsort(doctor->devices, doctor->devices_count,
	      sizeof(doctor->devices[0]), compare_names);
}

static void add_no_device(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_WARN, "devices");
	char path[PATH_MAX];
	struct utsname kernel;

	doctor_value(finding, "no RDMA device; the software device serves");
	uname(&kernel);
	doctor_path(doctor, path,
		    "/lib/modules/%s/kernel/drivers/infiniband/sw/rxe",
		    kernel.release);
	if (!access(path, F_OK))
		doctor_fix(finding,
			   "for Soft-RoCE: modprobe rdma_rxe; rdma link add "
			   "rxe0 type rxe netdev INTERFACE");
	else
		doctor_fix(finding,
			   "none needed; for Soft-RoCE boot a kernel that has "
			   "the module rdma_rxe");
}

static void add_device(struct doctor *doctor, const char *device)
{
	struct doctor_finding *finding = doctor_add(doctor, DOCTOR_OK, device);
	char firmware[64], type[64], node[16];

	if (!doctor_read(doctor, type, sizeof(type),
			 "/sys/class/infiniband/%s/hca_type", device))
		strcpy(type, "type not told");
	if (!doctor_read(doctor, firmware, sizeof(firmware),
			 "/sys/class/infiniband/%s/fw_ver", device))
		strcpy(firmware, "not told");
	doctor_value(finding, "%s, firmware %s", type, firmware);
	if (doctor_read(doctor, node, sizeof(node),
			"/sys/class/infiniband/%s/device/numa_node", device) &&
	    *node != '-')
		doctor_value(finding, ", NUMA node %s", node);
}

static bool port_line(const struct doctor *doctor, const char *device,
		      int port, const char *file, char *line, size_t bytes)
{
	return doctor_read(doctor, line, bytes,
			   "/sys/class/infiniband/%s/ports/%d/%s", device,
			   port, file);
}

/* A finding named "mlx5_0:1 MTU". */
static struct doctor_finding *add_port_finding(struct doctor *doctor,
					       const char *device, int port,
					       const char *what)
{
	char name[96];

	snprintf(name, sizeof(name), "%s:%d%s", device, port, what);
	return doctor_add(doctor, DOCTOR_OK, name);
}

static bool add_port(struct doctor *doctor, const char *device, int port)
{
	char state[64], rate[64], link[64];
	struct doctor_finding *finding;
	bool is_active;

	port_line(doctor, device, port, "state", state, sizeof(state));
	port_line(doctor, device, port, "rate", rate, sizeof(rate));
	port_line(doctor, device, port, "link_layer", link, sizeof(link));
	is_active = strstr(state, "ACTIVE");
	finding = add_port_finding(doctor, device, port, "");
	doctor_value(finding, "state %s, %s, %s", state, rate, link);
	if (is_active)
		return true;
	finding->status = DOCTOR_WARN;
	doctor_fix(finding, strcmp(link, "Ethernet") ?
		   "connect the cable and run a subnet manager" :
		   "connect the cable; ip link set INTERFACE up");
	return false;
}

/* Reads what a GID slot holds. False: it is empty. */
static bool read_gid(const struct doctor *doctor, const char *device, int port,
		     int index, struct in6_addr *gid, char *type,
		     size_t type_bytes)
{
	static const struct in6_addr none;
	char file[64], line[64];

	snprintf(file, sizeof(file), "gids/%d", index);
	if (!port_line(doctor, device, port, file, line, sizeof(line)) ||
	    inet_pton(AF_INET6, line, gid) != 1 ||
	    !memcmp(gid, &none, sizeof(none)))
		return false;
	snprintf(file, sizeof(file), "gid_attrs/types/%d", index);
	port_line(doctor, device, port, file, type, type_bytes);
	return true;
}

static void add_gids(struct doctor *doctor, const char *device, int port,
		     bool is_ethernet)
{
	char type[64], text[INET6_ADDRSTRLEN];
	bool can_route = !is_ethernet;
	struct doctor_finding *finding;
	struct in6_addr gid;
	int found = 0;

	finding = add_port_finding(doctor, device, port, " GIDs");
	for (int i = 0; i < GIDS_MAX; i++) {
		if (!read_gid(doctor, device, port, i, &gid, type,
			      sizeof(type)))
			continue;
		/* iWARP has neither type nor version. */
		if (strcmp(type, "IB/RoCE v1"))
			can_route = true;
		inet_ntop(AF_INET6, &gid, text, sizeof(text));
		doctor_value(finding, "%s%d %s%s%s", found++ ? ", " : "", i,
			     text, *type ? " " : "", type);
	}
	if (!found) {
		finding->status = DOCTOR_WARN;
		doctor_value(finding, "none");
		doctor_fix(finding, "give the network interface of the port an "
			   "address: ip address add ADDR/LEN dev INTERFACE");
	} else if (!can_route) {
		finding->status = DOCTOR_WARN;
		doctor_fix(finding, "RoCE v1 cannot be routed; give the "
			   "network interface an IP address for RoCE v2");
	}
}

static unsigned int roce_mtu_bytes(unsigned int interface_mtu_bytes)
{
	unsigned int mtu_bytes = 4096;

	while (mtu_bytes > 256 &&
	       mtu_bytes + ROCE_HEADER_BYTES > interface_mtu_bytes)
		mtu_bytes /= 2;
	return mtu_bytes;
}

static void add_mtu(struct doctor *doctor, const char *device, int port,
		    bool is_ethernet)
{
	char interface[64] = "", line[32];
	struct doctor_finding *finding;
	unsigned int mtu_bytes;

	finding = add_port_finding(doctor, device, port, " MTU");
	if (!is_ethernet ||
	    !port_line(doctor, device, port, "gid_attrs/ndevs/0", interface,
		       sizeof(interface)) ||
	    !doctor_read(doctor, line, sizeof(line), "/sys/class/net/%s/mtu",
			 interface)) {
		doctor_value(finding, "unknown without the device library");
		return;
	}
	mtu_bytes = roce_mtu_bytes(atoi(line));
	doctor_value(finding, "%u bytes (%s has %s)", mtu_bytes, interface,
		     line);
	if (mtu_bytes == 4096)
		return;
	finding->status = DOCTOR_WARN;
	doctor_fix(finding, "a page needs %u packets; where the switch allows "
		   "it: ip link set %s mtu 4200", 4096 / mtu_bytes, interface);
}

/* Device names come from the kernel, but here they become part of a command line. */
static bool is_plain_name(const char *name)
{
	while (isalnum((unsigned char)*name) || *name == '_' || *name == '-')
		name++;
	return !*name;
}

static void add_odp(struct doctor *doctor, const char *device)
{
	bool is_answered = false, is_supported = false;
	struct doctor_finding *finding;
	char name[96], line[256];
	FILE *output = NULL;

	snprintf(name, sizeof(name), "%s ODP", device);
	finding = doctor_add(doctor, DOCTOR_OK, name);
	if (!*doctor->root && is_plain_name(device)) {
		snprintf(line, sizeof(line),
			 "ibv_devinfo -v -d %s 2>/dev/null", device);
		output = popen(line, "r");
	}
	while (output && fgets(line, sizeof(line), output)) {
		is_answered |= !!strstr(line, "general_odp_caps");
		is_supported |= !!strstr(line, "ODP_SUPPORT");
	}
	if (output)
		pclose(output);
	doctor_value(finding, !is_answered ?
		     "unknown without the device library; ibv_devinfo -v of "
		     "ibverbs-utils tells" : is_supported ?
		     "on-demand paging supported; used if asked for "
		     "(on_demand_paging=1), else memory is pinned" :
		     "no on-demand paging; memory is pinned");
}

/* A program opens /dev/infiniband/uverbsN, the N of infiniband_verbs/. */
static void add_access(struct doctor *doctor, const char *device)
{
	char path[PATH_MAX], line[64];
	struct doctor_finding *finding;

	for (int i = 0; i < DOCTOR_DEVICES_MAX; i++) {
		doctor_read(doctor, line, sizeof(line),
			    "/sys/class/infiniband_verbs/uverbs%d/ibdev", i);
		if (strcmp(line, device))
			continue;
		doctor_path(doctor, path, "/dev/infiniband/uverbs%d", i);
		if (!access(path, R_OK | W_OK))
			return;
		finding = doctor_add(doctor, DOCTOR_FAIL, device);
		doctor_value(finding, "%s cannot be opened", path);
		doctor_fix(finding, "give this user read and write access to "
			   "/dev/infiniband/*");
		return;
	}
	finding = doctor_add(doctor, DOCTOR_FAIL, device);
	doctor_value(finding, "programs cannot reach it");
	doctor_fix(finding, "modprobe ib_uverbs");
}

static void add_no_port(struct doctor *doctor)
{
	struct doctor_finding *finding =
		doctor_add(doctor, DOCTOR_FAIL, "ports");

	doctor_value(finding, "no port of any device is active");
	doctor_fix(finding,
		   "mend one of the ports above, or use --fabric soft");
}

void doctor_devices(struct doctor *doctor)
{
	bool is_any_active = false;

	list_devices(doctor);
	if (!doctor->devices_count)
		add_no_device(doctor);
	for (size_t i = 0; i < doctor->devices_count; i++) {
		const char *device = doctor->devices[i];
		char link[64];

		add_device(doctor, device);
		for (int port = 1; port_line(doctor, device, port,
					     "link_layer", link, sizeof(link));
		     port++) {
			bool is_ethernet = !strcmp(link, "Ethernet");

			is_any_active |= add_port(doctor, device, port);
			add_gids(doctor, device, port, is_ethernet);
			add_mtu(doctor, device, port, is_ethernet);
		}
		add_odp(doctor, device);
		add_access(doctor, device);
	}
	if (doctor->devices_count && !is_any_active)
		add_no_port(doctor);
}
