/*
 * kota-worldgen: makes terrains. Each command parses its own options, checks
 * them, and calls one function; exit status 0 done, 1 failed, 2 not understood.
 */
#include "base/exit_code.h"
#include "deploy/demo/demo.h"
#include "deploy/demo/enlarge.h"
#include "deploy/demo/landscape.h"
#include "deploy/demo/parallel.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: kota-worldgen demo DIR [--size N] [--seed N] [--threads N] [--format png|f32]\n"
    "       kota-worldgen enlarge IN.png|IN.hgt|IN.asc OUT.f32 SIDE [--seed N] [--threads N]\n"
    "\n"
    "demo     writes the demo world as `kotad --world DIR` reads it: three landscapes, and a "
    "village,\n"
    "         a garden and a small planet of polygons. Same size and seed: same bytes, on any "
    "machine and number "
    "of\n"
    "         threads. Defaults: --size 2048 (128 to 8192 samples along x), --seed 1, --threads "
    "the\n"
    "         number of processors.\n"
    "enlarge  makes a DEM SIDE x SIDE samples large, with fractal detail that follows its relief.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 the command line is wrong.\n";

/* Options of all commands; each command knows which ones it takes. */
enum option_key {
    OPTION_SIZE = 1,
    OPTION_SEED,
    OPTION_THREADS,
    OPTION_FORMAT,
};

static int complain(const char *format, const char *what)
{
    fprintf(stderr, "kota-worldgen: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\nTry `kota-worldgen --help`.\n");
    return EXIT_MISUSED;
}

static int finish(enum err_code code, const struct err *err)
{
    if (!code)
        return EXIT_DONE;
    fprintf(stderr, "kota-worldgen: %s\n", err->msg);
    return EXIT_FAILED;
}

/* A whole number least..most in *out; false and a complaint otherwise. */
static bool read_count(const char *name, const char *text, uint32_t least, uint32_t most,
                       uint32_t *out)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value < least || value > most) {
        fprintf(stderr, "kota-worldgen: %s is %s, not a whole number from %u to %u\n", name, text,
                least, most);
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static uint32_t processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count < 1 ? 1 : count > 64 ? 64 : (uint32_t)count;
}

/* ---- demo --------------------------------------------------------------------------------- */

static bool demo_option(int option, struct demo_options *options)
{
    switch (option) {
    case OPTION_SIZE:
        return read_count("--size", optarg, LANDSCAPE_SIZE_MIN, LANDSCAPE_SIZE_MAX, &options->size);
    case OPTION_SEED:
        return read_count("--seed", optarg, 0, UINT32_MAX, &options->seed);
    case OPTION_THREADS:
        return read_count("--threads", optarg, 1, PARALLEL_THREADS_MAX, &options->threads);
    case OPTION_FORMAT:
        options->format = strcmp(optarg, "f32") ? GROUND_PNG : GROUND_F32;
        if (options->format == GROUND_F32 || !strcmp(optarg, "png"))
            return true;
        fprintf(stderr, "kota-worldgen: --format is %s, not png or f32\n", optarg);
        return false;
    default:
        return false; /* getopt has complained */
    }
}

static int run_demo(int argc, char **argv)
{
    static const struct option known[] = {{"size", required_argument, NULL, OPTION_SIZE},
                                          {"seed", required_argument, NULL, OPTION_SEED},
                                          {"threads", required_argument, NULL, OPTION_THREADS},
                                          {"format", required_argument, NULL, OPTION_FORMAT},
                                          {0}};
    struct demo_options options = {.size = 2048, .seed = 1, .threads = processors()};
    struct err err = {.code = ERR_OK};
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (!demo_option(option, &options))
            return EXIT_MISUSED;
    if (argc - optind != 1)
        return complain("demo needs %s", "one DIR");
    options.dir = argv[optind];
    return finish(demo_write(&options, &err), &err);
}

/* ---- enlarge ------------------------------------------------------------------------------ */

static int run_enlarge(int argc, char **argv)
{
    static const struct option known[] = {{"seed", required_argument, NULL, OPTION_SEED},
                                          {"threads", required_argument, NULL, OPTION_THREADS},
                                          {0}};
    uint32_t side, seed = 1, threads = processors();
    struct err err = {.code = ERR_OK};
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        bool read = option == OPTION_SEED
                        ? read_count("--seed", optarg, 0, UINT32_MAX, &seed)
                        : option == OPTION_THREADS &&
                              read_count("--threads", optarg, 1, PARALLEL_THREADS_MAX, &threads);

        if (!read)
            return EXIT_MISUSED;
    }
    if (argc - optind != 3)
        return complain("enlarge needs %s", "IN, OUT and SIDE");
    if (!read_count("SIDE", argv[optind + 2], 2, 32768, &side))
        return EXIT_MISUSED;
    return finish(enlarge_file(argv[optind], argv[optind + 1], side, seed, threads, &err), &err);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"demo", run_demo}, {"enlarge", run_enlarge}};

    if (argc < 2)
        return complain("%s", "which command?");
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage, stdout);
            return EXIT_DONE;
        }
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(argv[1], commands[i].name)) {
            argv[1] = argv[0]; /* getopt names the program by it */
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return complain("there is no command %s", argv[1]);
}
