#ifndef KOTA_SANDSCENE_FILM_H
#define KOTA_SANDSCENE_FILM_H

/* kota-sand film OUT.png: drops a model on ground and shows it as a strip of pictures. */

#include <stdint.h>

struct film_options {
    const char *out;
    const char *model; /* an OBJ file, a solid in metres; NULL: a barrel */
    double granules, height_m, density;
    double rest_s; /* most that is waited for rest */
    uint32_t threads;
    const char *gpu; /* NULL: the C engine */
};

/* The exit status: 0, or 1 after a message to stderr. */
int film_run(const struct film_options *options);

#endif
