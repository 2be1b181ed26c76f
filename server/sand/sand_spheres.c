/*
 * Spheres for pictures and live ground: the sand thread gets them from the engine.
 *
 * A wait is its owner's (a thread that waits has it on its stack), and in a list of the sand until
 * it is done. An engine returns an answer once, so two that wait for one patch take turns.
 */
#include "sand/sand_data.h"

#include "base/clock.h"

#include <stdlib.h>

#define SPHERES_WAIT_S 5.0

static void wait_over(struct sand *sand, struct sphere_wait **at)
{
    struct sphere_wait *wait = *at;

    *at = wait->next;
    wait->is_done = true;
    pthread_cond_broadcast(&sand->is_answered);
}

/* True when this wait is over. */
static bool serve_wait(struct sand *sand, struct sphere_wait *wait, double now)
{
    int answer = 0;

    if (sand->is_stopping) {
        err_set(&wait->err, ERR_BUSY, "the daemon stops");
    } else if (!wait->is_requested) {
        wait->room = manager_spheres_max(sand->manager, wait->number);
        wait->spheres = malloc(((size_t)wait->room + 1) * sizeof *wait->spheres);
        wait->is_requested = wait->spheres && manager_spheres_request(sand->manager, wait->number);
        wait->until_s = now + SPHERES_WAIT_S;
        if (!wait->spheres)
            err_set(&wait->err, ERR_NO_MEMORY, "no memory for %u spheres", wait->room);
        else if (!wait->is_requested)
            answer = -1;
    }
    if (wait->err.code == ERR_OK && wait->is_requested)
        answer = manager_spheres_poll(sand->manager, wait->number, wait->spheres, &wait->count);
    if (answer < 0)
        err_set(&wait->err, ERR_CONFLICT, "patch %llu has no granules, not yet or no more",
                (unsigned long long)wait->number);
    else if (wait->err.code == ERR_OK && answer == 0 && now > wait->until_s)
        err_set(&wait->err, ERR_BUSY, "the device has not answered for %g s", SPHERES_WAIT_S);
    return answer > 0 || wait->err.code != ERR_OK;
}

/* Two that wait for one patch take turns: an engine returns an answer once. */
static bool is_first(const struct sand *sand, const struct sphere_wait *wait)
{
    for (const struct sphere_wait *other = sand->spheres; other != wait; other = other->next)
        if (other->number == wait->number)
            return false;
    return true;
}

bool sand_spheres_serve(struct sand *sand)
{
    const double now = monotonic_s();
    bool is_waiting;

    pthread_mutex_lock(&sand->mutex);
    for (struct sphere_wait **at = &sand->spheres; *at;) {
        if ((is_first(sand, *at) || sand->is_stopping) && serve_wait(sand, *at, now))
            wait_over(sand, at);
        else
            at = &(*at)->next;
    }
    is_waiting = sand->spheres != NULL;
    pthread_mutex_unlock(&sand->mutex);
    return is_waiting;
}

/* The mutex is held. */
static void append(struct sand *sand, struct sphere_wait *wait)
{
    struct sphere_wait **end = &sand->spheres;

    while (*end)
        end = &(*end)->next;
    *end = wait;
}

void sand_spheres_ask(struct sand *sand, struct sphere_wait *wait)
{
    pthread_mutex_lock(&sand->mutex);
    append(sand, wait);
    pthread_mutex_unlock(&sand->mutex);
}

enum err_code sand_patch_spheres(struct sand *sand, uint64_t number, float (**spheres)[4],
                                 uint32_t *count, struct err *err)
{
    struct sphere_wait wait = {.number = number, .err = {.code = ERR_OK}};

    pthread_mutex_lock(&sand->mutex);
    if (sand->is_stopping) {
        pthread_mutex_unlock(&sand->mutex);
        return err_set(err, ERR_BUSY, "the daemon stops");
    }
    append(sand, &wait);
    pthread_cond_signal(&sand->is_wanted);
    while (!wait.is_done)
        pthread_cond_wait(&sand->is_answered, &sand->mutex);
    pthread_mutex_unlock(&sand->mutex);
    if (wait.err.code != ERR_OK) {
        free(wait.spheres);
        *err = wait.err;
        return err->code;
    }
    *spheres = wait.spheres;
    *count = wait.count;
    return ERR_OK;
}
