/*
 * GET /            the inspector's page
 * GET /docs        the page that shows /openapi.json
 * GET /docs/errors a paragraph for each code of an error, made of docs/errors.md
 * GET /web/{file}  their scripts, styles and shaders
 *
 * The files of client/web/ are embedded by the build, so the page works offline and always fits the
 * daemon that serves it. They have nothing of a world, therefore they need no token; the calls that
 * they fetch do. The policy lets the page load nothing but itself.
 */
#include "api/calls.h"

#include "api/options.h"
#include "api/tile_cache.h"

#include <string.h>

#ifndef KOTA_WEB_ASSETS
#error "the build defines KOTA_WEB_ASSETS, the table that client/web/list.py writes"
#endif

#define WEB_ASSET(symbol, name, type, tag, path)                                                   \
    extern const char web_##symbol[], web_##symbol##_end[];                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global web_" #symbol ", web_" #symbol "_end\n"                                       \
            "web_" #symbol ":\n"                                                                   \
            ".incbin \"" path "\"\n"                                                               \
            "web_" #symbol "_end:\n"                                                               \
            ".byte 0\n"                                                                            \
            ".popsection\n");
#include KOTA_WEB_ASSETS
#undef WEB_ASSET

static const struct asset {
    const char *name, *media_type, *tag, *bytes, *end;
} assets[] = {
#define WEB_ASSET(symbol, name, type, tag, path)                                                   \
    {name, type, tag, web_##symbol, web_##symbol##_end},
#include KOTA_WEB_ASSETS
#undef WEB_ASSET
};

static const char policy[] =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' "
    "blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct asset *find(struct span name)
{
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++)
        if (strlen(assets[i].name) == name.length &&
            memcmp(assets[i].name, name.at, name.length) == 0)
            return &assets[i];
    return NULL;
}

static enum err_code send(struct call *call, struct span name, struct err *err)
{
    const struct asset *asset = find(name);
    struct span match = {NULL, 0};

    if (options_open_query(call, NULL, err))
        return err->code;
    if (!asset)
        return err_set(err, ERR_NOT_FOUND, "the inspector has no file of this name");
    if (call->request)
        match = http_request_header(call->request, "if-none-match");
    call_header(call, "ETag", "%s", asset->tag);
    call_header(call, "Cache-Control", "no-cache");
    call_header(call, "X-Content-Type-Options", "nosniff");
    call_header(call, "Content-Security-Policy", "%s", policy);
    if (tile_tag_matches(match.at, match.length, asset->tag)) {
        call_status(call, 304);
        return ERR_OK;
    }
    call_content_type(call, asset->media_type);
    if (call->reply)
        http_reply_static(call->reply, asset->bytes, (size_t)(asset->end - asset->bytes));
    return ERR_OK;
}

enum err_code index_get_answer(struct call *call, struct err *err)
{
    static const char name[] = "index.html";

    return send(call, (struct span){name, sizeof name - 1}, err);
}
API_HANDLER(index_get, 0, CALL_NEEDS_NOTHING)

enum err_code docs_get_answer(struct call *call, struct err *err)
{
    static const char name[] = "docs.html";

    return send(call, (struct span){name, sizeof name - 1}, err);
}
API_HANDLER(docs_get, 0, CALL_NEEDS_NOTHING)

enum err_code docs_errors_get_answer(struct call *call, struct err *err)
{
    static const char name[] = "errors.html";

    return send(call, (struct span){name, sizeof name - 1}, err);
}
API_HANDLER(docs_errors_get, 0, CALL_NEEDS_NOTHING)

enum err_code web_get_answer(struct call *call, struct err *err)
{
    return send(call, call->params[0], err);
}
API_HANDLER(web_get, 1, CALL_NEEDS_NOTHING)
