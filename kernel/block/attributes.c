/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attributes.c - the files in /sys/block/rdmabox0/rdmabox/: the name of the volume, and
 * counters of its requests.
 *
 *	volume			the name that it was given; udev makes a link of it
 *	state, servers		see state.c
 *	read_requests		and so on: counted since it was attached
 *	read_latency_p99_ns	within 4 %
 *	read_latency		the histogram, with a line for each power of two: a
 *				latency in ns, and how many requests took at most that,
 *				but more than the latency of the line before
 */
#include <linux/blkdev.h>

#include "kernel/block/disk.h"

static const struct rbx_disk *disk_of(struct device *device)
{
	return dev_to_disk(device)->private_data;
}

static ssize_t volume_show(struct device *device,
			   struct device_attribute *attribute, char *page)
{
	return sysfs_emit(page, "%s\n", rbx_disk_volume_name(disk_of(device)));
}
static DEVICE_ATTR_RO(volume);

/* ---- Numbers ------------------------------------------------------------------*/

struct number {
	struct device_attribute attribute;
	enum rbx_io_op op;
	u64 (*of)(const struct rbx_disk_tally *tally);
};

static ssize_t number_show(struct device *device,
			   struct device_attribute *attribute, char *page)
{
	const struct number *number =
		container_of(attribute, struct number, attribute);

	return sysfs_emit(page, "%llu\n",
			  number->of(rbx_disk_tally(disk_of(device),
						    number->op)));
}

static u64 requests_of(const struct rbx_disk_tally *tally)
{
	return READ_ONCE(tally->requests);
}

static u64 bytes_of(const struct rbx_disk_tally *tally)
{
	return READ_ONCE(tally->bytes);
}

static u64 errors_of(const struct rbx_disk_tally *tally)
{
	return READ_ONCE(tally->errors);
}

static u64 latency_p50_ns_of(const struct rbx_disk_tally *tally)
{
	return rbx_histogram_quantile(&tally->latency, 500);
}

static u64 latency_p99_ns_of(const struct rbx_disk_tally *tally)
{
	return rbx_histogram_quantile(&tally->latency, 990);
}

static u64 latency_p999_ns_of(const struct rbx_disk_tally *tally)
{
	return rbx_histogram_quantile(&tally->latency, 999);
}

static u64 latency_max_ns_of(const struct rbx_disk_tally *tally)
{
	return READ_ONCE(tally->latency.max);
}

/* X(direction, op, name) for each number of a direction. */
#define NUMBERS_OF(X, direction, op)                                      \
	X(direction, op, requests)                                        \
	X(direction, op, bytes)                                           \
	X(direction, op, errors)                                          \
	X(direction, op, latency_p50_ns)                                  \
	X(direction, op, latency_p99_ns)                                  \
	X(direction, op, latency_p999_ns)                                 \
	X(direction, op, latency_max_ns)
#define NUMBERS(X)                          \
	NUMBERS_OF(X, read, RBX_IO_READ)    \
	NUMBERS_OF(X, write, RBX_IO_WRITE)

#define NUMBER(direction, op_, name)                                      \
	static struct number direction##_##name = {                       \
		.attribute = __ATTR(direction##_##name, 0444,             \
				    number_show, NULL),                   \
		.op = op_,                                                \
		.of = name##_of,                                          \
	};
NUMBERS(NUMBER)

/* ---- Histograms ---------------------------------------------------------------*/

/* The values of a power of two share RBX_HISTOGRAM_SUB_COUNT buckets. */
#define POWERS (RBX_HISTOGRAM_BUCKETS / RBX_HISTOGRAM_SUB_COUNT)

static ssize_t histogram_emit(const struct rbx_histogram *histogram, char *page)
{
	ssize_t count = 0;
	u32 power, i;

	for (power = 0; power < POWERS; power++) {
		u64 last = ((u64)RBX_HISTOGRAM_SUB_COUNT << power) - 1;
		u64 sum = 0;

		for (i = 0; i < RBX_HISTOGRAM_SUB_COUNT; i++)
			sum += READ_ONCE(
				histogram->counts[power * RBX_HISTOGRAM_SUB_COUNT +
						  i]);
		if (sum)
			count += sysfs_emit_at(page, (int)count, "%llu %llu\n",
					       last, sum);
	}
	return count;
}

static ssize_t read_latency_show(struct device *device,
				 struct device_attribute *attribute, char *page)
{
	return histogram_emit(
		&rbx_disk_tally(disk_of(device), RBX_IO_READ)->latency, page);
}
static DEVICE_ATTR_RO(read_latency);

static ssize_t write_latency_show(struct device *device,
				  struct device_attribute *attribute,
				  char *page)
{
	return histogram_emit(
		&rbx_disk_tally(disk_of(device), RBX_IO_WRITE)->latency, page);
}
static DEVICE_ATTR_RO(write_latency);

/* ---- All of them ----------------------------------------------------------------*/

#define NUMBER_ATTRIBUTE(direction, op, name) \
	&direction##_##name.attribute.attr,

static struct attribute *attributes[] = {
	&dev_attr_volume.attr,
	&rbx_disk_attribute_state.attr,
	&rbx_disk_attribute_servers.attr,
	&dev_attr_read_latency.attr,
	&dev_attr_write_latency.attr,
	NUMBERS(NUMBER_ATTRIBUTE)
	NULL,
};

static const struct attribute_group attribute_group = {
	.name = "rdmabox",
	.attrs = attributes,
};

const struct attribute_group *rbx_disk_attribute_groups[] = { &attribute_group,
							      NULL };
