/*
 * Nanoseconds of a height of libkota-ground, one by one, at 4096 random places of a field of SIDE²:
 * the least of 50 rounds. Built and run by bench_replica_js.py.
 */
#include <kota-ground.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 1024, PLACES = 4096, ROUNDS = 50 };

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(void)
{
    const struct kota_ground_field field = {{0, 0}, {1, 1}, SIDE, SIDE};
    struct kota_ground_copy *copy = kota_ground_open();
    struct kota_ground_reader *reader = kota_ground_reader_open(copy);
    float *heights_m = malloc(sizeof *heights_m * SIDE * SIDE);
    static double xy[2 * PLACES];
    double least = 1e18, sum = 0;
    const struct kota_ground_locale *land;

    for (int i = 0; i < SIDE * SIDE; i++)
        heights_m[i] = (float)(i % 17);
    for (int i = 0; i < 2 * PLACES; i++)
        xy[i] = (SIDE - 1) * (rand() / (RAND_MAX + 1.0));
    kota_ground_put_locale(copy, "land", NULL, 1, NULL);
    kota_ground_put_field(copy, "land", "ground", &field, heights_m, 2, NULL);
    kota_ground_publish(copy, NULL);
    land = kota_ground_locale(kota_ground_newest(reader), "land");
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();

        for (int i = 0; i < PLACES; i++)
            sum += kota_ground_height(land, xy[2 * i], xy[2 * i + 1]);
        least = now_ns() - start < least ? now_ns() - start : least;
    }
    printf("%.3f\n", least / PLACES);
    free(heights_m);
    kota_ground_reader_close(reader);
    kota_ground_close(copy);
    return sum == sum ? 0 : 1;
}
