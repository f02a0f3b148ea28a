int rbx_sim_main(int, char **); int main(int argc, char **argv) { return rbx_sim_main(argc, argv); }
