/*
 * kota-worldgen: makes terrains and pictures of them. Each command parses its own options, checks
 * them, and calls one function; exit status 0 done, 1 failed, 2 not understood.
 */
#include "base/exit_code.h"
#include "deploy/demo/demo.h"
#include "deploy/demo/enlarge.h"
#include "deploy/demo/landscape.h"
#include "deploy/demo/parallel.h"
#include "deploy/demo/picture_file.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: kota-worldgen demo DIR [--size N] [--seed N] [--threads N] [--format png|f32]\n"
    "       kota-worldgen enlarge IN.png|IN.hgt|IN.asc OUT.f32 SIDE [--seed N] [--threads N]\n"
    "       kota-worldgen picture LOCALE_DIR OUT.png [--width N] [--height N] [--eye X,Y,Z]\n"
    "                     [--target X,Y,Z] [--fov DEGREES] [--sun X,Y,Z] [--palette NAME]\n"
    "                     [--threads N] [--map]\n"
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
    "picture  draws a landscape, with shadows and haze, from --eye towards --target (metres in "
    "the\n"
    "         locale's frame; from the south-west over the middle unless given). --sun points\n"
    "         towards the sun. --palette auto, alpine, islands or desert. --map draws it from "
    "above,\n"
    "         shaded, one pixel a sample or as many as --width says.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 the command line is wrong.\n";

/* Options of all commands; each command knows which ones it takes. */
enum option_key {
    OPTION_SIZE = 1,
    OPTION_SEED,
    OPTION_THREADS,
    OPTION_FORMAT,
    OPTION_WIDTH,
    OPTION_HEIGHT,
    OPTION_EYE,
    OPTION_TARGET,
    OPTION_FOV,
    OPTION_SUN,
    OPTION_PALETTE,
    OPTION_MAP,
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

static bool read_vector(const char *name, const char *text, struct vec3 *out)
{
    char *end;
    double v[3];

    for (int i = 0; i < 3; i++) {
        v[i] = strtod(text, &end);
        if (end == text || *end != (i < 2 ? ',' : '\0') || !isfinite(v[i])) {
            fprintf(stderr, "kota-worldgen: %s needs three numbers X,Y,Z\n", name);
            return false;
        }
        text = end + 1;
    }
    *out = (struct vec3){v[0], v[1], v[2]};
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

/* ---- picture ------------------------------------------------------------------------------ */

static bool picture_option(int option, struct picture_options *options)
{
    switch (option) {
    case OPTION_WIDTH:
        return read_count("--width", optarg, 16, 8192, &options->width);
    case OPTION_HEIGHT:
        return read_count("--height", optarg, 16, 8192, &options->height);
    case OPTION_THREADS:
        return read_count("--threads", optarg, 1, PARALLEL_THREADS_MAX, &options->threads);
    case OPTION_EYE:
        return options->has_eye = read_vector("--eye", optarg, &options->eye);
    case OPTION_TARGET:
        return options->has_target = read_vector("--target", optarg, &options->target);
    case OPTION_SUN:
        return read_vector("--sun", optarg, &options->sun);
    case OPTION_FOV:
        options->fov_y_deg = strtod(optarg, NULL);
        if (options->fov_y_deg >= 1 && options->fov_y_deg <= 170)
            return true;
        fprintf(stderr, "kota-worldgen: --fov is %s, not 1 to 170 degrees\n", optarg);
        return false;
    case OPTION_PALETTE:
        if (palette_of_name(optarg, &options->palette))
            return true;
        fprintf(stderr, "kota-worldgen: --palette is %s, not auto, alpine, islands or desert\n",
                optarg);
        return false;
    case OPTION_MAP:
        return options->map = true;
    default:
        return false; /* getopt has complained */
    }
}

static int run_picture(int argc, char **argv)
{
    static const struct option known[] = {{"width", required_argument, NULL, OPTION_WIDTH},
                                          {"height", required_argument, NULL, OPTION_HEIGHT},
                                          {"threads", required_argument, NULL, OPTION_THREADS},
                                          {"eye", required_argument, NULL, OPTION_EYE},
                                          {"target", required_argument, NULL, OPTION_TARGET},
                                          {"sun", required_argument, NULL, OPTION_SUN},
                                          {"fov", required_argument, NULL, OPTION_FOV},
                                          {"palette", required_argument, NULL, OPTION_PALETTE},
                                          {"map", no_argument, NULL, OPTION_MAP},
                                          {0}};
    struct picture_options options = picture_options_default;
    struct err err = {.code = ERR_OK};
    int option;

    options.threads = processors();
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (!picture_option(option, &options))
            return EXIT_MISUSED;
    if (argc - optind != 2)
        return complain("picture needs %s", "LOCALE_DIR and OUT.png");
    return finish(picture_file(argv[optind], argv[optind + 1], &options, &err), &err);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {{"demo", run_demo}, {"enlarge", run_enlarge}, {"picture", run_picture}};

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
