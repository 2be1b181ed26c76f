/*
 * A game server's ground: avatars that walk over a locale while another client digs in it.
 *
 *     game_server [--url URL] [--locale ID] [--seconds S] [--avatars N] [--rate HZ] [--digs HZ]
 *                 [--ask]
 *
 * The ground is in this process: a replica of the locale follows the daemon, and each tick asks it
 * for the ground under every avatar. Nothing is sent for that; the network has only the changes
 * that somebody makes. With --ask each tick sends one binary batch over HTTP instead and waits for
 * its answer: the same game without a replica, for comparison.
 *
 * Avatars come from above everything, and afterwards take steps of half a metre up (the default of
 * `reach_up`): one that walks under a bridge stays under it. Where an edit has raised the ground
 * over an avatar the answer is `below`; it climbs a metre a tick until it is out.
 *
 * A second thread, with a client of its own, digs craters where avatars stand.
 *
 * Are they on the ground? Twice a second a referee asks the daemon for the contacts at the same
 * places. Where its answer is of the revision of the tick, each avatar must stand where it says. An
 * answer of another revision decides nothing. At the end, when the digging has ended, all avatars
 * are asked about again. One that is off the ground makes the exit status 1, and so do a call that
 * failed, a referee who saw nothing, and a digger who changed nothing.
 */
#include <kota-ground.h>
#include <kota.h>

#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    const char *url, *locale;
    double seconds, rate_hz, digs_hz;
    bool asks; /* over HTTP; else of the replica */
    size_t count;
    double *points;     /* [count][3], where the avatars are asked about */
    double *heading;    /* [count] */
    bool *is_on_ground; /* [count] */
    double min[2], max[3];
    uint64_t revision; /* that the avatars stand at */
    struct kota_client *client;
    struct kota_replica *replica; /* NULL with --ask */
    struct kota_ground_reader *reader;
    struct kota_ground_contact *own; /* [count] */
    struct kota_contact *daemons;    /* [count] */
    unsigned ticks, missed, failed;
    double worst_s, sum_s;
    uint64_t first_bytes, last_bytes;
    unsigned checks, off_ground;
    size_t checked;
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

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_until(double at_s)
{
    const struct timespec at = {(time_t)at_s, (long)(1e9 * (at_s - floor(at_s)))};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* 4 m/s, by and by another way, and back from the border. */
static void move(struct game *game)
{
    for (size_t i = 0; i < game->count; i++) {
        game->heading[i] += 0.4 * (random_unit() - 0.5);
        for (int axis = 0; axis < 2; axis++) {
            double way = axis == 0 ? cos(game->heading[i]) : sin(game->heading[i]);
            double to = game->points[3 * i + (size_t)axis] + 4 / game->rate_hz * way;

            if (to < game->min[axis] + 1 || to > game->max[axis] - 1)
                game->heading[i] += 1.5;
            else
                game->points[3 * i + (size_t)axis] = to;
        }
    }
    pthread_mutex_lock(&game->digger.lock);
    memcpy(game->digger.at, game->points + 3 * (game->ticks % game->count),
           sizeof(game->digger.at));
    pthread_mutex_unlock(&game->digger.lock);
}

static void stand(struct game *game, size_t i, unsigned status, double floor_m)
{
    game->is_on_ground[i] = status == KOTA_GROUND_OK;
    if (status == KOTA_GROUND_OK)
        game->points[3 * i + 2] = floor_m;
    else if (status == KOTA_GROUND_BELOW)
        game->points[3 * i + 2] += 1;
}

/* The newest state that the replica has, the same for all avatars. */
static void stand_on_replica(struct game *game)
{
    const struct kota_ground_view *view = kota_ground_newest(game->reader);
    const struct kota_ground_locale *here = kota_ground_locale(view, game->locale);

    if (!here ||
        !kota_ground_contacts(here, NULL, NULL, game->points, game->count, game->own, NULL)) {
        game->failed++;
        return;
    }
    for (size_t i = 0; i < game->count; i++)
        stand(game, i, game->own[i].status, game->own[i].floor.point[2]);
    game->revision = kota_ground_revision(here);
}

static void stand_by_asking(struct game *game)
{
    struct kota_request *request =
        kota_batch_f64(KOTA_CONTACT, game->locale, game->points, game->count, NULL);
    struct kota_answer *answer = kota_call(game->client, request);
    const double *contacts = kota_read_f64(answer, game->count, KOTA_CONTACT_NUMBERS);

    for (size_t i = 0; contacts && i < game->count; i++)
        stand(game, i, (unsigned)contacts[KOTA_CONTACT_NUMBERS * i + 5],
              contacts[KOTA_CONTACT_NUMBERS * i]);
    game->failed += contacts == NULL;
    game->revision = kota_answer_revision(answer);
    kota_answer_free(answer);
}

/* ---- the referee ----------------------------------------------------------------------------- */

/* What the daemon says about the places where the avatars stand. */
static void judge(struct game *game)
{
    struct kota_answer *answer =
        kota_call(game->client, kota_contact(game->locale, game->points, game->count, NULL));

    if (!kota_read_contact(answer, game->daemons, game->count)) {
        if (game->failed++ < 5)
            fprintf(stderr, "game_server: referee: %s\n", kota_answer_error(answer)->message);
    } else if (kota_answer_revision(answer) == game->revision) {
        game->checks++;
        for (size_t i = 0; i < game->count; i++) {
            double floor_m = game->daemons[i].floor.point[2];

            if (!game->is_on_ground[i])
                continue;
            game->checked++;
            if (floor_m == game->points[3 * i + 2])
                continue;
            if (game->off_ground++ < 5)
                fprintf(stderr,
                        "game_server: avatar %zu stands at %.17g m, the ground is at %.17g\n", i,
                        game->points[3 * i + 2], floor_m);
        }
    }
    kota_answer_free(answer);
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
        double next_s = now_s() + 1 / digger->digs_hz, at[2];
        struct kota_answer *answer;
        struct kota_edit edit;

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
        sleep_until(next_s);
    }
    kota_close(client, NULL, NULL);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

/* The locale's heightfield says how far one may go. */
static bool look_around(struct game *game)
{
    struct kota_answer *answer = kota_call(game->client, kota_locale(game->locale));
    struct kota_layer layer;
    bool is_there = kota_read_layer(answer, 0, 0, &layer) && layer.cols > 0 && layer.has_bounds;

    if (is_there) {
        memcpy(game->min, layer.min, sizeof(game->min));
        memcpy(game->max, layer.max, sizeof(game->max));
    } else {
        fprintf(stderr, "game_server: %s: %s\n", game->locale,
                kota_answer_error(answer) ? kota_answer_error(answer)->message
                                          : "its first layer is no heightfield");
    }
    kota_answer_free(answer);
    return is_there;
}

static bool hold(struct game *game, const struct kota_options *client)
{
    const struct kota_replica_locale followed = {.id = game->locale};
    struct kota_replica_options options;
    struct kota_replica_status status;

    kota_replica_options_init(&options, sizeof(options));
    options.client = client;
    options.locales = &followed;
    options.locale_count = 1;
    game->replica = kota_replica_open(&options);
    if (kota_replica_wait(game->replica, game->locale, 0, 60)) {
        game->reader = kota_ground_reader_open(kota_replica_copy(game->replica));
        return game->reader != NULL;
    }
    kota_replica_status(game->replica, game->locale, &status, sizeof(status));
    fprintf(stderr, "game_server: no replica: %s%s\n", status.refusal, status.error.message);
    return false;
}

static bool make_avatars(struct game *game)
{
    game->points = calloc(game->count, 3 * sizeof(double));
    game->heading = calloc(game->count, sizeof(double));
    game->is_on_ground = calloc(game->count, sizeof(bool));
    game->own = calloc(game->count, sizeof(*game->own));
    game->daemons = calloc(game->count, sizeof(*game->daemons));
    if (!game->points || !game->heading || !game->is_on_ground || !game->own || !game->daemons)
        return false;
    for (size_t i = 0; i < game->count; i++) {
        for (size_t axis = 0; axis < 2; axis++)
            game->points[3 * i + axis] =
                game->min[axis] + 1 + random_unit() * (game->max[axis] - game->min[axis] - 2);
        game->points[3 * i + 2] = game->max[2];
        game->heading[i] = 6.28 * random_unit();
    }
    return true;
}

static uint64_t received(const struct game *game)
{
    struct kota_replica_status status = {0};

    if (game->replica)
        kota_replica_status(game->replica, game->locale, &status, sizeof(status));
    return status.received_bytes;
}

static void tick(struct game *game)
{
    double start_s = now_s(), took_s;

    if (game->asks)
        stand_by_asking(game);
    else
        stand_on_replica(game);
    took_s = now_s() - start_s;
    game->sum_s += took_s;
    game->worst_s = took_s > game->worst_s ? took_s : game->worst_s;
}

static void play(struct game *game)
{
    unsigned ticks = (unsigned)(game->seconds * game->rate_hz);
    unsigned between = game->rate_hz > 2 ? (unsigned)(game->rate_hz / 2) : 1;
    double start_s = now_s();

    game->first_bytes = received(game);
    for (game->ticks = 0; game->ticks < ticks; game->ticks++) {
        double due_s = start_s + game->ticks / game->rate_hz;

        if (now_s() > due_s + 1 / game->rate_hz) {
            game->missed++;
            continue;
        }
        sleep_until(due_s);
        move(game);
        tick(game);
        if (game->ticks % between == 0)
            judge(game);
    }
    game->last_bytes = received(game);
}

static int report(const struct game *game)
{
    unsigned answered = game->ticks - game->missed;

    printf("%u ticks at %g Hz, %u missed; %zu avatars a tick\n", game->ticks, game->rate_hz,
           game->missed, game->count);
    printf("contact: mean %.3f ms, worst %.3f ms, %s\n",
           answered > 0 ? 1e3 * game->sum_s / answered : 0, 1e3 * game->worst_s,
           game->asks ? "asked over HTTP" : "of the replica");
    if (!game->asks)
        printf("network: %.1f bytes a tick\n",
               (double)(game->last_bytes - game->first_bytes) / game->ticks);
    printf("%u craters dug\n", game->digger.done);
    printf("referee: %u checks at one revision, %zu places; %u off the ground\n", game->checks,
           game->checked, game->off_ground);
    if (game->failed + game->digger.failed > 0)
        fprintf(stderr, "game_server: %u calls failed\n", game->failed + game->digger.failed);
    return game->off_ground > 0 || game->failed + game->digger.failed > 0 || game->checked == 0 ||
           (game->digs_hz > 0 && game->digger.done == 0);
}

static int run(struct game *game)
{
    struct kota_options options;
    struct kota_answer *answer;

    kota_options_init(&options, sizeof(options));
    options.url = game->url;
    game->client = kota_open(&options);
    if (!look_around(game) || !make_avatars(game) || (!game->asks && !hold(game, &options)))
        return 1;
    pthread_mutex_init(&game->digger.lock, NULL);
    memcpy(game->digger.at, game->points, sizeof(game->digger.at));
    game->digger.url = game->url;
    game->digger.locale = game->locale;
    game->digger.digs_hz = game->digs_hz;
    if (game->digs_hz > 0 && pthread_create(&game->digger.thread, NULL, dig, &game->digger))
        return 1;
    play(game);
    atomic_store(&game->digger.stop, true);
    if (game->digs_hz > 0)
        pthread_join(game->digger.thread, NULL);
    answer = kota_call(game->client, kota_locale(game->locale)); /* the last word of the daemon */
    if (game->replica &&
        !kota_replica_wait(game->replica, game->locale, kota_answer_revision(answer), 10))
        game->failed++;
    kota_answer_free(answer);
    tick(game);
    judge(game);
    return report(game);
}

static void end(struct game *game)
{
    kota_ground_reader_close(game->reader);
    kota_replica_close(game->replica);
    kota_close(game->client, NULL, NULL);
    free(game->points);
    free(game->heading);
    free(game->is_on_ground);
    free(game->own);
    free(game->daemons);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"url", 1, NULL, 'u'},     {"locale", 1, NULL, 'l'},
                                          {"seconds", 1, NULL, 's'}, {"avatars", 1, NULL, 'a'},
                                          {"rate", 1, NULL, 'r'},    {"digs", 1, NULL, 'd'},
                                          {"ask", 0, NULL, 'q'},     {0}};
    static struct game game = {.url = "http://127.0.0.1:7420",
                               .locale = "highlands",
                               .seconds = 10,
                               .count = 1000,
                               .rate_hz = 60,
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
        case 'q':
            game.asks = true;
            break;
        default:
            return 2;
        }
    }
    if (optind < argc || !(game.seconds > 0 && game.rate_hz > 0 && game.rate_hz <= 1000) ||
        game.count < 1 || game.count > 100000 || !(game.digs_hz >= 0 && game.digs_hz <= 1000)) {
        fprintf(stderr, "usage: game_server [--url URL] [--locale ID] [--seconds S] [--avatars N] "
                        "[--rate HZ] [--digs HZ] [--ask]\n");
        return 2;
    }
    status = run(&game);
    end(&game);
    return status;
}
