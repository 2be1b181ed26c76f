/*
 * A program that tests/programs.list calls `both` does less in make test than in make test-all.
 */
#ifndef KOTA_TESTS_LONG_FORM_H
#define KOTA_TESTS_LONG_FORM_H

#include <stdlib.h>

/* How many in this run: `most` in make test-all and make physics, `few` in make test. */
static inline unsigned long_form(unsigned most, unsigned few)
{
    return getenv("KOTA_TEST_ALL") || getenv("KOTA_LONG") ? most : few;
}

#endif
