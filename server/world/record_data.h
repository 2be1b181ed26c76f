/*
 * What record.c writes and record_read.c reads, beside what record.h says.
 */
#ifndef KOTA_WORLD_RECORD_DATA_H
#define KOTA_WORLD_RECORD_DATA_H

enum { RECORD_VERSION = 1, RECORD_TILE_STRIDE = 257 };

enum record_whole { RECORD_WHOLE_LOCALE, RECORD_DELETED_LOCALE, RECORD_ALL_MODELS };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "recorded numbers are little-endian");

#endif
