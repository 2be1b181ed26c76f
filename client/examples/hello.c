/*
 * The smallest program that reads the ground: the height at a point of the demo world.
 *
 *     cc hello.c $(pkg-config --cflags --libs libkota) -o hello
 *     ./hello http://127.0.0.1:7420 highlands 1000 1000
 *
 * A request, a call, an answer; all errors are reported in one place.
 */
#include <kota.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct kota_options options;
    struct kota_client *client;
    struct kota_answer *answer;
    struct kota_height at;
    int status = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: hello URL LOCALE X Y\n");
        return 2;
    }
    kota_options_init(&options, sizeof(options));
    options.url = argv[1];
    client = kota_open(&options);
    answer = kota_call(client, kota_get_height(argv[2], atof(argv[3]), atof(argv[4]), 0));
    if (!kota_read_height(answer, &at, 1)) {
        fprintf(stderr, "hello: %s\n", kota_answer_error(answer)->message);
        status = 1;
    } else if (at.status == KOTA_GROUND_OK) {
        printf("%g m\n", at.height_m);
    } else {
        printf("%s\n", at.status == KOTA_GROUND_HOLE ? "a hole" : "outside");
    }
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    return status;
}
