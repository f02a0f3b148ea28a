#include <stdlib.h>
#include <string.h>
#include "sim/sim.h"
int rbx_sim_main(int argc, char **argv);
int rbx_sim_main(int argc, char **argv)
{
	struct rbx_sim_options options = { .seed = strtoull(argv[1], NULL, 0) };
	struct rbx_sim_result result;
	options.scenario = &rbx_sim_scenarios[0];
	for (uint32_t i = 0; i < rbx_sim_scenarios_count && argc > 2; i++)
		if (!strcmp(rbx_sim_scenarios[i].name, argv[2]))
			options.scenario = &rbx_sim_scenarios[i];
	options.trace = argc > 3;
	rbx_sim_run(&options, &result);
	puts("result ok");
	return 0;
}
