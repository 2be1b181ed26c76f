/*
 * What bare libcurl costs for the calls of library_calls.c: the least of a client that is
 * made on it.
 *
 *   curl_calls URL LOCALE one|batch CALLS
 *
 * The same bytes are sent by curl_easy_perform; the answer is dropped. The first tenth is not
 * counted.
 */
#include "processor_us.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 10000 };

static size_t dropped(char *at, size_t size, size_t count, void *data)
{
    (void)at;
    (void)data;
    return size * count;
}

int main(int argc, char **argv)
{
    static double xy[2 * BATCH];
    const int is_one = argc == 5 && !strcmp(argv[3], "one");
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = NULL;
    char url[256];
    double begun_us = 0;
    long calls;

    if (argc != 5 || !easy)
        return 2;
    calls = atol(argv[4]);
    for (int i = 0; i < BATCH; i++)
        xy[2 * i] = xy[2 * i + 1] = 1 + i % 200;
    snprintf(url, sizeof(url), "%s/v1/locales/%s/height%s", argv[1], argv[2],
             is_one ? "?x=3&y=4" : "");
    headers = curl_slist_append(headers, is_one ? "Accept: application/json"
                                                : "Content-Type: application/vnd.kota.f64");
    headers = is_one ? headers : curl_slist_append(headers, "Accept:");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, dropped);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 131072L);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    if (!is_one) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)xy);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)sizeof(xy));
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 262144L);
    }
    for (long i = -calls / 10; i < calls; i++) {
        if (i == 0)
            begun_us = processor_us();
        if (curl_easy_perform(easy) != CURLE_OK)
            return 1;
    }
    printf("%.3f\n", (processor_us() - begun_us) / (double)calls);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    return 0;
}
