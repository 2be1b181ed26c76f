/*
 * A game server's ground: avatars that walk over a locale while another client digs in it.
 *
 *     game_server [--url URL] [--locale ID] [--seconds S] [--avatars N] [--rate HZ] [--digs HZ]
 *
 * One thread runs a libuv loop, as a game server would. Each tick moves all avatars and asks for
 * the ground under them in one binary contact batch; when the answer is there each is placed on it.
 * A tick that comes while the last answer is still out is missed, and counted. The feed of the
 * locale reports each change meanwhile.
 *
 * Avatars come from above everything, and afterwards take steps of half a metre up (the default of
 * `reach_up`): one that walks under a bridge stays under it. Where an edit has raised the ground
 * over an avatar the answer is `below`; it climbs a metre a tick until it is out.
 *
 * A second thread, with a client of its own, digs craters where avatars stand.
 *
 * Are they on the ground? A referee asks for the heights at the same places, by another question,
 * right after each tick. Both answers name their revision. Where they are the same, each avatar
 * must stand where the height is. If the ground changed between the two, `diff` says which samples
 * may have changed since the first; an avatar beside those must stand right all the same, and one
 * among them is left to the next tick. At the end, when the digging has ended, all of them are
 * asked about again. One that is off the ground makes the exit status 1, and so do a call that
 * failed, a referee who saw nothing, and a digger who changed nothing.
 *
 * Coordinates go out as float32 relative to the middle of the locale (`base`): there a float is
 * exact to a tenth of a millimetre. The numbers that are sent count: the avatar is at the rounded
 * place.
 */
#include <kota.h>

#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

enum { RECTS_MAX = 1000 };

/* The two answers come from different questions of the same surface, in float32. */
static const double tolerance_m = 1e-3;

struct avatar {
    float xyz[3]; /* relative to base; z is the ground's as of `revision` */
    float heading_rad;
    bool is_on_ground;
};

struct digger {
    pthread_t thread;
    pthread_mutex_t lock; /* guards at */
    double at[2];         /* where to dig next */
    atomic_bool stop;
    double digs_hz;
    const char *url, *locale;
    unsigned done, failed;
};

struct game {
    uv_loop_t loop;
    uv_timer_t ticker;
    struct kota_client *client;
    const char *url, *locale;
    double seconds, rate_hz, digs_hz;
    size_t count;
    struct avatar *avatars; /* [count] */
    float *points;          /* [count][3] of the batch under way */
    double base[3], min[2], max[3], spacing[2], origin[2];
    uint64_t feed;
    unsigned ticks, ticks_max, missed, edits_seen, failed;
    bool is_asking;
    uint64_t asked_ns, worst_ns, sum_ns;
    uint64_t revision; /* that the avatars stand at */
    float *heights;    /* [count] of the referee */
    uint64_t heights_revision;
    unsigned checks, same_revision, off_ground;
    size_t checked, left;
    struct digger digger;
};

static uint64_t random_state = 88172645463325252u;

/* 0 to 1. Source: Marsaglia, "Xorshift RNGs", 2003. */
static double random_unit(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) * 0x1p-53;
}

static void complain(struct game *game, const char *what, struct kota_answer *answer)
{
    const struct kota_error *error = kota_answer_error(answer);

    if (game->failed++ < 5)
        fprintf(stderr, "game_server: %s: %s\n", what, error ? error->message : "");
}

/* ---- the referee ----------------------------------------------------------------------------- */

/* Does a changed sample touch the cell that the avatar is in? */
static bool is_in_rect(const struct game *game, const struct avatar *avatar, const uint32_t rect[4])
{
    double column = floor((avatar->xyz[0] + game->base[0] - game->origin[0]) / game->spacing[0]);
    double row = floor((avatar->xyz[1] + game->base[1] - game->origin[1]) / game->spacing[1]);

    return column + 1 >= rect[0] && column <= (double)rect[0] + rect[2] && row + 1 >= rect[1] &&
           row <= (double)rect[1] + rect[3];
}

/* rects: what has changed between the two answers; [0] when they are of one revision. */
static void judge(struct game *game, uint32_t (*rects)[4], size_t rect_count)
{
    game->checks++;
    game->same_revision += rect_count == 0;
    for (size_t i = 0; i < game->count; i++) {
        const struct avatar *avatar = &game->avatars[i];
        bool is_left = !avatar->is_on_ground;

        for (size_t j = 0; j < rect_count && !is_left; j++)
            is_left = is_in_rect(game, avatar, rects[j]);
        if (is_left) {
            game->left++;
            continue;
        }
        game->checked++;
        if (fabs((double)avatar->xyz[2] - (double)game->heights[i]) <= tolerance_m)
            continue;
        if (game->off_ground++ < 5)
            fprintf(stderr,
                    "game_server: avatar %zu stands at %g m, the ground of revision %llu is at "
                    "%g m\n",
                    i, (double)avatar->xyz[2], (unsigned long long)game->heights_revision,
                    (double)game->heights[i]);
    }
}

static bool take_diff(struct kota_answer *answer, void *context)
{
    struct game *game = context;
    uint32_t rects[RECTS_MAX][4];
    size_t count;

    if (!kota_read_diff(answer, rects, RECTS_MAX, &count) || count > RECTS_MAX)
        complain(game, "what has changed", answer);
    else
        judge(game, rects, count);
    game->is_asking = false;
    return false;
}

static bool take_heights(struct kota_answer *answer, void *context)
{
    struct game *game = context;
    const float *heights = kota_read_f32(answer, game->count, 1);

    game->is_asking = false;
    if (!heights) {
        complain(game, "heights", answer);
        return false;
    }
    memcpy(game->heights, heights, game->count * sizeof(float));
    game->heights_revision = kota_answer_revision(answer);
    if (game->heights_revision == game->revision) {
        judge(game, NULL, 0);
        return false;
    }
    game->is_asking = true;
    kota_start(game->client, kota_diff(game->locale, game->revision), take_diff, game);
    return false;
}

static void ask_referee(struct game *game)
{
    float *xy = game->points; /* two of three numbers are used */

    for (size_t i = 0; i < game->count; i++) {
        xy[2 * i] = game->avatars[i].xyz[0];
        xy[2 * i + 1] = game->avatars[i].xyz[1];
    }
    kota_start(game->client, kota_batch_f32(KOTA_HEIGHT, game->locale, xy, game->count, game->base),
               take_heights, game);
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* contact: floor_z nx ny nz ceiling_z status */
static void stand(struct avatar *avatar, const float *contact)
{
    enum kota_ground status = (enum kota_ground)contact[5];

    avatar->is_on_ground = status == KOTA_GROUND_OK;
    if (status == KOTA_GROUND_OK)
        avatar->xyz[2] = contact[0];
    else if (status == KOTA_GROUND_BELOW)
        avatar->xyz[2] += 1;
}

static bool take_contacts(struct kota_answer *answer, void *context)
{
    struct game *game = context;
    const float *contacts = kota_read_f32(answer, game->count, KOTA_CONTACT_NUMBERS);
    uint64_t took_ns = uv_hrtime() - game->asked_ns;

    if (took_ns > game->worst_ns)
        game->worst_ns = took_ns;
    game->sum_ns += took_ns;
    if (!contacts) {
        complain(game, "contact", answer);
        game->is_asking = false;
        return false;
    }
    game->revision = kota_answer_revision(answer);
    for (size_t i = 0; i < game->count; i++)
        stand(&game->avatars[i], contacts + KOTA_CONTACT_NUMBERS * i);
    ask_referee(game);
    return false;
}

static void ask_again(struct game *game)
{
    struct kota_request *request;

    for (size_t i = 0; i < game->count; i++)
        memcpy(game->points + 3 * i, game->avatars[i].xyz, sizeof(game->avatars[i].xyz));
    request = kota_batch_f32(KOTA_CONTACT, game->locale, game->points, game->count, game->base);
    kota_request_timeout(request, 5);
    game->is_asking = true;
    game->asked_ns = uv_hrtime();
    kota_start(game->client, request, take_contacts, game);
}

/* 4 m/s, by and by another way, and back from the border. */
static void move(struct game *game)
{
    for (size_t i = 0; i < game->count; i++) {
        struct avatar *avatar = &game->avatars[i];

        avatar->heading_rad += (float)(0.4 * (random_unit() - 0.5));
        for (int axis = 0; axis < 2; axis++) {
            double way =
                axis == 0 ? cos((double)avatar->heading_rad) : sin((double)avatar->heading_rad);
            double to = (double)avatar->xyz[axis] + game->base[axis] + 4 / game->rate_hz * way;

            if (to < game->min[axis] + 1 || to > game->max[axis] - 1)
                avatar->heading_rad += 1.5f;
            else
                avatar->xyz[axis] = (float)(to - game->base[axis]);
        }
    }
    pthread_mutex_lock(&game->digger.lock);
    for (int axis = 0; axis < 2; axis++)
        game->digger.at[axis] =
            game->base[axis] + (double)game->avatars[game->ticks % game->count].xyz[axis];
    pthread_mutex_unlock(&game->digger.lock);
}

static void on_tick(uv_timer_t *ticker)
{
    struct game *game = ticker->data;

    if (game->ticks >= game->ticks_max) {
        if (game->is_asking)
            return;
        uv_timer_stop(ticker);
        kota_cancel(game->client, game->feed);
        return;
    }
    game->ticks++;
    if (game->is_asking) {
        game->missed++;
        return;
    }
    move(game);
    ask_again(game);
}

static void on_event(const struct kota_event *event, void *context)
{
    struct game *game = context;

    game->edits_seen += event->kind == KOTA_EVENT_EDIT;
    if (event->kind == KOTA_EVENT_ENDED)
        game->failed++;
}

/* ---- the digger ------------------------------------------------------------------------------ */

static void *dig(void *context)
{
    struct digger *digger = context;
    struct kota_options options;
    struct kota_client *client;

    kota_options_init(&options, sizeof(options));
    options.url = digger->url;
    client = kota_open(&options);
    while (!atomic_load(&digger->stop)) {
        struct timespec pause = {.tv_nsec = (long)(1e9 / digger->digs_hz)};
        struct kota_answer *answer;
        struct kota_edit edit;
        double at[2];

        pthread_mutex_lock(&digger->lock);
        memcpy(at, digger->at, sizeof(at));
        pthread_mutex_unlock(&digger->lock);
        answer =
            kota_call(client, kota_edit_brush(digger->locale, KOTA_CRATER, at[0], at[1], 12, 1.5));
        if (kota_read_edit(answer, &edit))
            digger->done++;
        else if (digger->failed++ == 0)
            fprintf(stderr, "game_server: digging: %s\n", kota_answer_error(answer)->message);
        kota_answer_free(answer);
        nanosleep(&pause, NULL);
    }
    kota_close(client, NULL, NULL);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

/* The locale's heightfield says how far one may go. */
static bool look_around(struct game *game)
{
    struct kota_options options;
    struct kota_client *client;
    struct kota_answer *answer;
    struct kota_layer layer;
    bool is_there;

    kota_options_init(&options, sizeof(options));
    options.url = game->url;
    client = kota_open(&options);
    answer = kota_call(client, kota_locale(game->locale));
    is_there = kota_read_layer(answer, 0, 0, &layer) && layer.cols > 0 && layer.has_bounds;
    for (int axis = 0; axis < 2 && is_there; axis++) {
        game->min[axis] = layer.min[axis];
        game->max[axis] = layer.max[axis];
        game->spacing[axis] = layer.spacing[axis];
        game->origin[axis] = layer.origin[axis];
        game->base[axis] = (layer.min[axis] + layer.max[axis]) / 2;
    }
    game->max[2] = layer.max[2];
    if (!is_there)
        fprintf(stderr, "game_server: %s: %s\n", game->locale,
                kota_answer_error(answer) ? kota_answer_error(answer)->message
                                          : "its first layer is no heightfield");
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    return is_there;
}

static bool make_avatars(struct game *game)
{
    game->avatars = calloc(game->count, sizeof(*game->avatars));
    game->points = calloc(game->count, 3 * sizeof(float));
    game->heights = calloc(game->count, sizeof(float));
    if (!game->avatars || !game->points || !game->heights)
        return false;
    for (size_t i = 0; i < game->count; i++) {
        for (int axis = 0; axis < 2; axis++)
            game->avatars[i].xyz[axis] =
                (float)(game->min[axis] + 1 +
                        random_unit() * (game->max[axis] - game->min[axis] - 2) - game->base[axis]);
        game->avatars[i].xyz[2] = (float)game->max[2];
        game->avatars[i].heading_rad = (float)(6.28 * random_unit());
    }
    return true;
}

static int report(const struct game *game)
{
    unsigned answered = game->ticks - game->missed;

    printf("%u ticks at %g Hz, %u missed; %zu avatars a tick\n", game->ticks, game->rate_hz,
           game->missed, game->count);
    printf("contact: mean %.2f ms, worst %.2f ms\n",
           answered > 0 ? 1e-6 * (double)game->sum_ns / answered : 0,
           1e-6 * (double)game->worst_ns);
    printf("%u craters dug, %u changes told by the feed\n", game->digger.done, game->edits_seen);
    printf("referee: %u checks, %u of them at one revision; %zu places right or wrong, %zu left to "
           "the next; %u off the ground\n",
           game->checks, game->same_revision, game->checked, game->left, game->off_ground);
    if (game->failed + game->digger.failed > 0)
        fprintf(stderr, "game_server: %u calls failed\n", game->failed + game->digger.failed);
    return game->off_ground > 0 || game->failed + game->digger.failed > 0 || game->checked == 0 ||
           (game->digs_hz > 0 && (game->digger.done == 0 || game->edits_seen == 0));
}

static int play(struct game *game)
{
    struct kota_options options;
    bool digs = game->digs_hz > 0;

    uv_loop_init(&game->loop);
    kota_options_init(&options, sizeof(options));
    options.url = game->url;
    options.loop = &game->loop;
    game->client = kota_open(&options);
    uv_timer_init(&game->loop, &game->ticker);
    game->ticker.data = game;
    game->ticks_max = (unsigned)(game->seconds * game->rate_hz);
    game->feed = kota_watch(game->client, kota_locale_events(game->locale), on_event, game);
    pthread_mutex_init(&game->digger.lock, NULL);
    game->digger.url = game->url;
    game->digger.locale = game->locale;
    game->digger.digs_hz = game->digs_hz;
    memcpy(game->digger.at, game->base, sizeof(game->digger.at));
    if (digs && pthread_create(&game->digger.thread, NULL, dig, &game->digger))
        return 1;
    uv_timer_start(&game->ticker, on_tick, 0, (uint64_t)(1000 / game->rate_hz));
    uv_run(&game->loop, UV_RUN_DEFAULT);
    atomic_store(&game->digger.stop, true);
    if (digs)
        pthread_join(game->digger.thread, NULL);
    ask_again(game); /* the digging has ended: all of them, at one revision */
    uv_run(&game->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&game->ticker, NULL);
    kota_close(game->client, NULL, NULL);
    uv_run(&game->loop, UV_RUN_DEFAULT);
    uv_loop_close(&game->loop);
    pthread_mutex_destroy(&game->digger.lock);
    return report(game);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"url", 1, NULL, 'u'},
                                          {"locale", 1, NULL, 'l'},
                                          {"seconds", 1, NULL, 's'},
                                          {"avatars", 1, NULL, 'a'},
                                          {"rate", 1, NULL, 'r'},
                                          {"digs", 1, NULL, 'd'},
                                          {0}};
    static struct game game = {.url = "http://127.0.0.1:7420",
                               .locale = "highlands",
                               .seconds = 10,
                               .count = 1000,
                               .rate_hz = 20,
                               .digs_hz = 10};
    int option, status;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'u':
            game.url = optarg;
            break;
        case 'l':
            game.locale = optarg;
            break;
        case 's':
            game.seconds = atof(optarg);
            break;
        case 'a':
            game.count = strtoul(optarg, NULL, 10);
            break;
        case 'r':
            game.rate_hz = atof(optarg);
            break;
        case 'd':
            game.digs_hz = atof(optarg);
            break;
        default:
            return 2;
        }
    }
    if (optind < argc || !(game.seconds > 0 && game.rate_hz > 0 && game.rate_hz <= 1000) ||
        game.count < 1 || game.count > 100000 || !(game.digs_hz >= 0 && game.digs_hz <= 1000)) {
        fprintf(stderr, "usage: game_server [--url URL] [--locale ID] [--seconds S] [--avatars N] "
                        "[--rate HZ] [--digs HZ]\n");
        return 2;
    }
    status = !look_around(&game) || !make_avatars(&game) || play(&game);
    free(game.avatars);
    free(game.points);
    free(game.heights);
    return status;
}
