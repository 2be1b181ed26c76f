/*
 * Hexadecimal digits.
 */
#ifndef KOTA_BASE_HEX_H
#define KOTA_BASE_HEX_H

/* 0 to 15; -1 when c is no hexadecimal digit. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
