/*
 * Pictures as files: reads a locale, chooses a view when none is given, draws, encodes.
 *
 * The default view is over the field's south-west, higher than its summits and
 * no lower than 60 m above the ground, and looks down over the middle: it shows most of any
 * terrain.
 */
#include "deploy/demo/picture_file.h"

#include "formats/raster/raster.h"
#include "deploy/demo/locale_file.h"
#include "deploy/demo/world_folder.h"

#include <stdlib.h>

const struct picture_options picture_options_default = {.sun = {-0.72, 0.22, 0.46},
                                                        .fov_y_deg = 46};

static struct camera view_of(const struct heightfield *field, const struct picture_options *options)
{
    struct camera camera = {options->eye, options->target, {0, 0, 1}, options->fov_y_deg};
    struct box3 box;
    struct vec3 size;
    struct ground_point ground;

    heightfield_bounds(field, &box);
    size = vec3_sub(box.max, box.min);
    if (!options->has_target)
        camera.target =
            vec3_add(box.min, (struct vec3){size.x * 0.55, size.y * 0.55, size.z * 0.2});
    if (!options->has_eye) {
        camera.eye = vec3_add(box.min, (struct vec3){size.x * 0.03, size.y * 0.05, size.z * 1.3});
        heightfield_height(field, (struct vec2){camera.eye.x, camera.eye.y}, INTERPOLATION_BILINEAR,
                           &ground);
        if (ground.status == GROUND_OK && camera.eye.z < ground.height_m + 60)
            camera.eye.z = ground.height_m + 60;
    }
    return camera;
}

static void size_of(const struct heightfield *field, const struct picture_options *options,
                    struct picture_view *view)
{
    const struct heightfield_spec *spec = heightfield_spec(field);
    double shape = (spec->rows - 1) * spec->spacing_y_m / ((spec->cols - 1) * spec->spacing_x_m);

    view->width = options->width ? options->width : options->map ? spec->cols : 1280;
    view->height = options->height ? options->height
                   : options->map  ? (uint32_t)(view->width * shape + 0.5)
                                   : (uint32_t)(view->width * 9 / 16);
    if (!view->height)
        view->height = 1;
}

static enum err_code picture_draw(const struct heightfield *field, const char *out,
                                  const struct picture_options *options, struct err *err)
{
    struct picture_view view = {.camera = view_of(field, options),
                                .sun = options->sun,
                                .palette = options->palette,
                                .threads = options->threads};
    struct raster_bytes file = {0};
    enum err_code code;
    uint8_t *rgb;

    size_of(field, options, &view);
    rgb = malloc((size_t)view.width * view.height * 3);
    if (!rgb)
        return err_set(err, ERR_NO_MEMORY, "no memory for %u x %u pixels", view.width, view.height);
    code = options->map ? picture_map(field, &view, rgb, err)
                        : picture_perspective(field, &view, rgb, err);
    if (!code)
        code = png_encode(view.width, view.height, 3, rgb, 6, &file, err);
    if (!code)
        code = file_write(out, file.at, file.length, err);
    free(file.at);
    free(rgb);
    return code;
}

enum err_code picture_file(const char *locale_dir, const char *out,
                           const struct picture_options *options, struct err *err)
{
    struct heightfield *field = locale_read(locale_dir, err);
    enum err_code code;

    if (!field)
        return err->code;
    code = picture_draw(field, out, options, err);
    heightfield_unref(field);
    return code;
}
