/*
 * Headers that are lists: Accept, Accept-Encoding (RFC 9110, section 5.6.1).
 */
#ifndef KOTA_API_HEADER_LIST_H
#define KOTA_API_HEADER_LIST_H

#include "base/span.h"

/* Takes what is before the next `mark` from *rest, without blanks around it; rest->at is not NULL
 * unless its length is 0. */
struct span header_part(struct span *rest, char mark);

/* Is it that word, in letters of any case? */
bool header_is(struct span text, const char *word);

/* The value of a parameter in "q=0.5;version=1"; at is NULL when it is not there. */
struct span header_parameter(struct span parameters, const char *name);

/* The parameter q in thousandths; 1000 when it is not there, -1 when it is malformed. */
int header_weight(struct span parameters);

#endif
