/*
 * kota-sand: granular ground without a server. Runs the published scenes, compares conversions,
 * makes films, bakes the packing that ground is cut from, and names the device. Exit status 0 done,
 * 1 failed, 2 not understood.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"
#include "bench/sandscene/bake.h"
#include "bench/sandscene/compare.h"
#include "bench/sandscene/engines.h"
#include "bench/sandscene/film.h"
#include "bench/sandscene/scene.h"

static const char usage[] =
    "usage: kota-sand scene dense|scales|ten [--share F] [--seconds S] [--wall S] [--interval S]\n"
    "                       [--threads N] [--gpu auto|software|INDEX]\n"
    "       kota-sand compare repeat|impacts|scales|fill [--count N] [--scale "
    "fine|medium|coarse]\n"
    "                       [--size M] [--depth M] [--cells N] [--threads N]\n"
    "                       [--gpu auto|software|INDEX]\n"
    "       kota-sand film OUT.png [--model OBJ] [--granules N] [--height M] [--density D]\n"
    "                       [--seconds S] [--threads N] [--gpu auto|software|INDEX]\n"
    "       kota-sand bake [SIDE [FRACTION [SEED]]]\n"
    "       kota-sand device [auto|software|INDEX]\n"
    "\n"
    "scene  runs a scene and prints how fast: dense is one patch of 115,502 granules and a "
    "barrel,\n"
    "       scales three patches of three scales, ten ten patches with a body every --interval\n"
    "       seconds (10). --share takes a part of the granules (1), --seconds ends after so much\n"
    "       simulated time (20), --wall after so many seconds (600). Without --gpu the C engine\n"
    "       does it on --threads threads (2).\n"
    "compare prints what conversions do to a place of --size (8 D) by --depth (3 D) metres and\n"
    "       --cells (16) along a side: repeat converts it --count times (15) with nothing on it,\n"
    "       by difference and by overwriting; impacts drops a barrel --count times (12) into it;\n"
    "       scales tells the error of what is written at the three scales (--count 3 impacts\n"
    "       each); fill compares the packing with stacked columns.\n"
    "film   drops a barrel, or a model of --density kg/m3 (3000), from --height metres (15) onto\n"
    "       a patch of about --granules (2500) and writes four pictures of it side by side: over\n"
    "       the ground, the impact, at rest (or after --seconds, 8), and the heightfield that the\n"
    "       patch is written back to.\n"
    "bake   prints the packing that ground is cut from, as it is embedded.\n"
    "device prints which device OpenGL has for --gpu; status 1 when there is none.\n"
    "meant.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 the command line is wrong.\n";

static int complain(const char *what)
{
    fprintf(stderr, "kota-sand: %s\n%s", what, usage);
    return EXIT_MISUSED;
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
    return code == EXIT_MISUSED ? complain("no scene has this name") : code;
}

static int compare_command(int argc, char **argv)
{
    static const struct option table[] = {
        {"count", required_argument, NULL, 'c'}, {"scale", required_argument, NULL, 's'},
        {"size", required_argument, NULL, 'x'},  {"depth", required_argument, NULL, 'd'},
        {"cells", required_argument, NULL, 'e'}, {"threads", required_argument, NULL, 'n'},
        {"gpu", required_argument, NULL, 'g'},   {NULL, 0, NULL, 0}};
    struct compare_options options = {.stage = {.scale = SCALE_COARSE}};
    double count = 0, cells = 16, threads = 2;
    int key, code;

    while ((key = getopt_long(argc, argv, "", table, NULL)) != -1) {
        bool ok = key != '?';

        if (key == 'c')
            ok = number(optarg, 1, 1000, &count);
        else if (key == 's')
            ok = scale_from_name(optarg, &options.stage.scale);
        else if (key == 'x')
            ok = number(optarg, 0.1, 1000, &options.stage.size_m);
        else if (key == 'd')
            ok = number(optarg, 0.1, 100, &options.stage.depth_m);
        else if (key == 'e')
            ok = number(optarg, 4, 256, &cells);
        else if (key == 'n')
            ok = number(optarg, 1, 64, &threads);
        else if (key == 'g')
            options.stage.gpu = optarg;
        if (!ok)
            return complain("an option is unknown, or its value out of range");
    }
    if (optind + 1 != argc)
        return complain("compare takes one name");
    options.what = argv[optind];
    options.count = (uint32_t)count;
    options.stage.cells = (uint32_t)cells;
    options.stage.threads = (uint32_t)threads;
    code = compare_run(&options);
    return code == EXIT_MISUSED ? complain("no comparison has this name") : code;
}

static int film_command(int argc, char **argv)
{
    static const struct option table[] = {
        {"model", required_argument, NULL, 'm'},   {"granules", required_argument, NULL, 'c'},
        {"height", required_argument, NULL, 'h'},  {"density", required_argument, NULL, 'd'},
        {"seconds", required_argument, NULL, 's'}, {"threads", required_argument, NULL, 'n'},
        {"gpu", required_argument, NULL, 'g'},     {NULL, 0, NULL, 0}};
    struct film_options options = {.granules = 2500, .height_m = 15, .density = 3000, .rest_s = 8};
    double threads = 2;
    int key;

    while ((key = getopt_long(argc, argv, "", table, NULL)) != -1) {
        bool ok = key != '?';

        if (key == 'm')
            options.model = optarg;
        else if (key == 'c')
            ok = number(optarg, 500, 1e6, &options.granules);
        else if (key == 'h')
            ok = number(optarg, 0, 100, &options.height_m);
        else if (key == 's')
            ok = number(optarg, 0, 1000, &options.rest_s);
        else if (key == 'd')
            ok = number(optarg, 1, 1e5, &options.density);
        else if (key == 'n')
            ok = number(optarg, 1, 64, &threads);
        else if (key == 'g')
            options.gpu = optarg;
        if (!ok)
            return complain("an option is unknown, or its value out of range");
    }
    if (optind + 1 != argc)
        return complain("film takes one file");
    options.out = argv[optind];
    options.threads = (uint32_t)threads;
    return film_run(&options);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) == EOF;
    if (argc >= 2 && strcmp(argv[1], "bake") == 0)
        return bake_command(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "scene") == 0)
        return scene_command(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "compare") == 0)
        return compare_command(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "film") == 0)
        return film_command(argc - 1, argv + 1);
    if (argc >= 2 && argc <= 3 && strcmp(argv[1], "device") == 0)
        return scene_device_print(argc == 3 ? argv[2] : "auto");
    return complain("no command");
}
