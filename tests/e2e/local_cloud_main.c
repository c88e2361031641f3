/* local_cloud_main.c - the hidden subcommand on its own, so that its tests need no other part of burst. */
#include "providers/local/local.h"

int main(int argc, char **argv)
{
	return local_cloud_main(argc, argv);
}
