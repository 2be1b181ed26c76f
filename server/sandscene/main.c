/*
 * kota-sand: granular ground without a server. Runs the published scenes, and bakes the packing
 * that ground is cut from. Exit status 0 done, 1 failed, 2 not understood.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandscene/bake.h"
#include "sandscene/scene.h"

enum { EXIT_USAGE = 2 };

static const char usage[] =
    "usage: kota-sand scene dense|scales|ten [--share F] [--seconds S] [--wall S] [--interval S]\n"
    "                       [--threads N] [--gpu auto|software|INDEX]\n"
    "       kota-sand bake [SIDE [FRACTION [SEED]]]\n"
    "\n"
    "scene  runs a scene and prints how fast: dense is one patch of 115,502 granules and a "
    "barrel,\n"
    "       scales three patches of three scales, ten ten patches with a body every --interval\n"
    "       seconds (10). --share takes a part of the granules (1), --seconds ends after so much\n"
    "       simulated time (20), --wall after so many seconds (600). Without --gpu the C engine\n"
    "       does it on --threads threads (2).\n"
    "bake   prints the packing that ground is cut from, as it is embedded.\n";

static int complain(const char *what)
{
    fprintf(stderr, "kota-sand: %s\n%s", what, usage);
    return EXIT_USAGE;
}

static bool number(const char *text, double low, double high, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= low && *out <= high;
}

static int scene_command(int argc, char **argv)
{
    static const struct option table[] = {{"share", required_argument, NULL, 's'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"wall", required_argument, NULL, 'w'},
                                          {"interval", required_argument, NULL, 'i'},
                                          {"threads", required_argument, NULL, 'n'},
                                          {"gpu", required_argument, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    struct scene_options options = {
        .share = 1, .seconds = 20, .wall_s = 600, .interval_s = 10, .threads = 2};
    double threads = 2;
    int key, code;

    while ((key = getopt_long(argc, argv, "", table, NULL)) != -1) {
        bool ok = key != '?';

        if (key == 's')
            ok = number(optarg, 1e-4, 1, &options.share);
        else if (key == 't')
            ok = number(optarg, 0, 1e5, &options.seconds);
        else if (key == 'w')
            ok = number(optarg, 0, 1e6, &options.wall_s);
        else if (key == 'i')
            ok = number(optarg, 0, 1e4, &options.interval_s);
        else if (key == 'n')
            ok = number(optarg, 1, 64, &threads);
        else if (key == 'g')
            options.gpu = optarg;
        if (!ok)
            return complain("an option is unknown, or its value out of range");
    }
    if (optind + 1 != argc)
        return complain("scene takes one name");
    options.name = argv[optind];
    options.threads = (uint32_t)threads;
    code = scene_run(&options);
    return code == EXIT_USAGE ? complain("no scene has this name") : code;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) == EOF;
    if (argc >= 2 && strcmp(argv[1], "bake") == 0)
        return bake_command(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "scene") == 0)
        return scene_command(argc - 1, argv + 1);
    return complain("no command");
}
