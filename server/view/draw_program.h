/*
 * The programs of a view: shaders embedded at build. The context must be current.
 */
#ifndef KOTA_VIEW_DRAW_PROGRAM_H
#define KOTA_VIEW_DRAW_PROGRAM_H

#include "base/err.h"

#include <epoxy/gl.h>

/* Those before PROGRAM_SHADE are there twice: as they look, and only their depth. */
enum draw_program { PROGRAM_GROUND, PROGRAM_MESH, PROGRAM_SPHERE, PROGRAM_SHADE, PROGRAM_COUNT };

/* 0: ERR_INTERNAL with the compiler's first line. */
GLuint draw_program_make(enum draw_program program, bool depth_only, struct err *err);

#endif
