/*
 * GET /openapi.json  the contract: proto/openapi.yaml as JSON, embedded by the build
 * GET /              a page that says what this is and lists the calls of routes[]
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/routes.h"
#include "api/text.h"

#ifndef KOTA_OPENAPI_JSON
#error "the build defines KOTA_OPENAPI_JSON, the path of the document to embed"
#endif

extern const char openapi_json[], openapi_json_end[];

__asm__(".pushsection .rodata\n"
        ".global openapi_json, openapi_json_end\n"
        "openapi_json:\n"
        ".incbin \"" KOTA_OPENAPI_JSON "\"\n"
        "openapi_json_end:\n"
        ".byte 0\n"
        ".popsection\n");

enum err_code openapi_get_answer(struct call *call, struct err *err)
{
    if (options_open_query(call, NULL, err))
        return err->code;
    if (call->reply)
        http_reply_static(call->reply, openapi_json, (size_t)(openapi_json_end - openapi_json));
    return ERR_OK;
}
API_HANDLER(openapi_get, 0, CALL_NEEDS_NOTHING)

enum err_code index_get_answer(struct call *call, struct err *err)
{
    if (options_open_query(call, NULL, err))
        return err->code;
    call_content_type(call, "text/html; charset=utf-8");
    text_append(call, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width\">\n"
                      "<title>kota</title>\n"
                      "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;"
                      "margin:2rem auto;padding:0 1rem}code{font-size:.9em}"
                      "td{padding:.1rem 1rem .1rem 0}</style>\n"
                      "</head><body>\n<h1>kota</h1>\n"
                      "<p>This daemon answers questions about ground: heights, rays, contact, "
                      "picking, lines of sight.</p>\n");
    text_append(call,
                "<p>It holds %zu locales: see <a href=\"/v1/locales\">/v1/locales</a>. The "
                "contract is <a href=\"/openapi.json\">/openapi.json</a>; limits are at "
                "<a href=\"/v1/limits\">/v1/limits</a>, numbers at <a href=\"/v1/stats\">"
                "/v1/stats</a> and <a href=\"/metrics\">/metrics</a>. Version %s.</p>\n",
                call->snapshot->locale_count, KOTA_VERSION);
    text_append(call, "<h2>Calls</h2>\n<table>\n");
    for (size_t i = 0; i < api_route_count; i++)
        text_append(call, "<tr><td>%s</td><td><code>%s</code></td></tr>\n",
                    route_method_word(api_routes[i].http.method), api_routes[i].http.pattern);
    text_append(call, "</table>\n</body></html>\n");
    return ERR_OK;
}
API_HANDLER(index_get, 0, CALL_NEEDS_NOTHING)
