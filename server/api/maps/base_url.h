/*
 * The address of this daemon as its readers see it, for documents whose links must be absolute.
 */
#ifndef KOTA_API_BASE_URL_H
#define KOTA_API_BASE_URL_H

#include "api/call.h"

enum { BASE_URL_BYTES = 640 };

/*
 * "https://maps.example.net/kota", without a slash at its end: --public-url; else of the request:
 * X-Forwarded-Proto, -Host and -Prefix of a trusted proxy, else its Host. "" without any: links are
 * relative to the host then.
 */
void base_url(const struct call *call, char out[static BASE_URL_BYTES]);

#endif
