/*
 * The members of a view, for view*.c only; the public header is view.h.
 *
 *   view.c         the camera, the frame of the work, PNG
 *   view_splat.c   spheres and triangles into depths: the picture's and the sun's
 *   view_ground.c  the ground around, by rays
 *   view_light.c   shadow, openness, shade of a pixel
 */
#ifndef KOTA_SAND_VIEW_DATA_H
#define KOTA_SAND_VIEW_DATA_H

#include "sand/view/view.h"
#include "terrain/shade.h"

/* What a pixel shows: the index of a sphere; TRIANGLE + one of all bodies'; or one of these. */
#define VIEW_TRIANGLE 0x80000000u
#define VIEW_GROUND 0xfffffffcu
#define VIEW_BED 0xfffffffdu
#define VIEW_WALL 0xfffffffeu
#define VIEW_SKY 0xffffffffu

struct pixel {
    float depth; /* along the camera's axis; INFINITY: sky */
    uint32_t what;
    float normal[3]; /* of the ground */
};

/* A camera's frame: a point of the picture is eye + depth (forward + x right + y up). */
struct lens {
    struct vec3 eye, right, up, forward;
    double pixels; /* of a unit of x or y */
    double middle[2];
};

/* A grid across a direction: u, v across, and depth along it (less is nearer to the light). */
struct sun_map {
    struct vec3 u, v, along;
    double u0, v0, cell_m;
    uint32_t cols, rows;
    float *depth; /* [rows][cols], INFINITY: nothing */
};

/* The height of the granules, coarse and smoothed: points below it see less of the sky. */
struct openness {
    double x0, y0, cell_m;
    uint32_t cols, rows;
    float *height_m; /* [rows][cols] */
};

struct view {
    const struct view_scene *scene;
    uint32_t width, height;
    struct lens lens;
    struct pixel *pixels; /* [height][width] */
    struct vec3 *corners; /* [3 * triangle_count], of all bodies, in the locale's frame */
    struct vec3 *normals; /* [triangle_count] */
    uint32_t *body_of;    /* [triangle_count] */
    uint32_t triangle_count;
    struct sun_map sun;
    struct openness open;
    uint8_t film[4096]; /* shade_developed of light 0 .. FILM_LIGHT */
};

#define VIEW_FILM_LIGHT 8.0

/* The ray through the middle of a pixel: eye and its direction with a forward part of 1. */
static inline struct vec3 lens_way(const struct lens *lens, double column, double row)
{
    double x = (column + 0.5 - lens->middle[0]) / lens->pixels;
    double y = (lens->middle[1] - row - 0.5) / lens->pixels;

    return vec3_add(lens->forward, vec3_add(vec3_scale(lens->right, x), vec3_scale(lens->up, y)));
}

/* True for a sphere that is drawn; its centre in the locale's frame. */
bool view_sphere(const struct view_scene *scene, uint32_t i, struct vec3 *centre);

/* Draws spheres and bodies with a depth test. */
void view_splat(struct view *view);

/* The ground into all pixels that nothing nearer has. */
void view_ground(struct view *view);

/* False without memory. */
bool view_light_init(struct view *view);
void view_light_free(struct view *view);
struct colour view_shade(const struct view *view, const struct pixel *pixel, uint32_t column,
                         uint32_t row);

/* Depths of spheres and triangles in the sun's map. */
void view_splat_sun(const struct view *view, struct sun_map *map);

#endif
