/*
 * kota-sand: granular ground without a server. Bakes the packing that ground is cut from.
 *
 *   kota-sand bake [SIDE [FRACTION [SEED]]]
 */
#include <stdio.h>
#include <string.h>

#include "sandscene/bake.h"

static int usage(FILE *to)
{
    fputs("usage: kota-sand bake [SIDE [FRACTION [SEED]]]\n", to);
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "bake") == 0)
        return bake_command(argc - 2, argv + 2);
    return usage(argc >= 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
}
