/*
 * uri-host [ ":" port ]: the value of Host, and the authority of an absolute-form target.
 */
#ifndef KOTA_HTTP_AUTHORITY_H
#define KOTA_HTTP_AUTHORITY_H

#include "base/err.h"
#include "base/span.h"

/*
 * A registered name or IPv4 address, or an IPv6 address in brackets, and maybe a port of 0 to
 * 65535. An empty text is accepted: the caller decides whether it may be empty.
 *
 * where          "Host header": begins the message
 * ERR_BAD_INPUT  anything else, userinfo among it
 * Cost: each byte once, no allocation.
 * Source: RFC 3986 sections 3.2.2, 3.2.3; RFC 9112 section 3.2; RFC 9110 sections 4.2.1, 4.2.4.
 */
enum err_code http_authority_check(struct span text, const char *where, struct err *err);

#endif
