/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - rdmabox-sim-figures NAME [NIC-FILE]: runs a scenario that measures.
 */
#include <stdlib.h>

#include "sim/scenarios/figure.h"

static int usage(void)
{
	fprintf(stderr, "usage: rdmabox-sim-figures NAME [NIC-FILE]\n");
	for (uint32_t i = 0; i < rbx_figures_count; i++)
		fprintf(stderr, "  %-12s %s\n", rbx_figures[i].name,
			rbx_figures[i].purpose);
	return 2;
}

static const struct rbx_figure *find(const char *name)
{
	for (uint32_t i = 0; i < rbx_figures_count; i++) {
		if (!strcmp(rbx_figures[i].name, name))
			return &rbx_figures[i];
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char path[512], error[RBX_NIC_ERROR_MAX];
	struct rbx_nic_params params;
	const struct rbx_figure *figure;

	if (argc < 2 || argc > 3 || !(figure = find(argv[1])))
		return usage();
	snprintf(path, sizeof(path), RBX_NIC_GENERATIONS "/%s.conf",
		 figure->generation);
	if (rbx_nic_params_read(argc == 3 ? argv[2] : path, &params, error)) {
		fprintf(stderr, "rdmabox-sim-figures: %s\n", error);
		return 2;
	}
	return figure->run(&params, stdout);
}
