/*
 * GET /openapi.json  the contract: proto/openapi.yaml as JSON, embedded by the build
 */
#include "api/calls.h"

#include "api/options.h"

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
