/* A picture of a locale directory, from file to file. */
#ifndef KOTA_DEMO_PICTURE_FILE_H
#define KOTA_DEMO_PICTURE_FILE_H

#include "deploy/demo/picture.h"

struct picture_options {
    uint32_t width, height; /* pixels; 0: 1280 and 720, or with map the field's samples */
    uint32_t threads;
    bool map, has_eye, has_target;
    struct vec3 eye, target; /* metres in the locale's frame */
    struct vec3 sun;
    double fov_y_deg;
    enum palette palette;
};

extern const struct picture_options picture_options_default;

/*
 * Reads LOCALE_DIR/locale.json and its first layer, draws it, writes OUT as PNG.
 * ERR_NOT_FOUND, ERR_BAD_INPUT, ERR_UNPROCESSABLE, ERR_INTERNAL with the file and the reason.
 */
enum err_code picture_file(const char *locale_dir, const char *out,
                           const struct picture_options *options, struct err *err);

#endif
