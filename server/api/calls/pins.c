/*
 * GET    …/pins                ->  {"locale","revision","pins":[Pin…]}
 * GET    …/pins/{pin}          ->  {"locale","name","revision","memory_bytes"}
 * PUT    …/pins/{pin}          ->  201 or 200 Pin: the locale as it is now, under that name
 * DELETE …/pins/{pin}          ->  204
 * POST   …/pins/{pin}/restore  ->  Locale: the next revision, which has the pin's value
 */
#include "api/calls.h"

#include "api/encode.h"
#include "api/options.h"
#include "api/write.h"

#include <string.h>

static void pin_members(struct json_writer *w, const struct earlier *pin)
{
    json_put_string(w, "name", pin->name);
    json_put_integer(w, "revision", pin->value->revision);
    json_put_integer(w, "memory_bytes", pin->bytes);
}

static void pin_object(struct json_writer *w, const struct locale *locale,
                       const struct earlier *pin)
{
    json_begin_object(w);
    json_put_string(w, "locale", locale->id);
    pin_members(w, pin);
    json_end_object(w);
}

static const struct earlier *find(const struct locale *locale, const char *name)
{
    const struct earlier_list *pins = locale->pins;

    for (size_t i = 0; pins && i < pins->count; i++)
        if (strcmp(pins->at[i].name, name) == 0)
            return &pins->at[i];
    return NULL;
}

static void encode(struct json_writer *w, const struct world_outcome *outcome,
                   const struct imported *import)
{
    (void)import;
    pin_object(w, outcome->locale, find(outcome->locale, outcome->pin));
}

enum err_code pins_get_answer(struct call *call, struct err *err)
{
    const struct earlier_list *pins = call->locale->pins;
    struct json_writer *w = &call->out;

    if (options_open_query(call, NULL, err))
        return err->code;
    call_begin_answer(call);
    json_put_array(w, "pins");
    for (size_t i = 0; pins && i < pins->count; i++) {
        json_begin_object(w);
        pin_members(w, &pins->at[i]);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}
API_HANDLER(pins_get, 1, CALL_NEEDS_LOCALE)

enum err_code pin_get_answer(struct call *call, struct err *err)
{
    char name[WORLD_ID_MAX + 1];
    const struct earlier *pin;

    if (options_open_query(call, NULL, err) ||
        call_param_id(call, 1, "pin", ERR_PIN_UNKNOWN, name, err))
        return err->code;
    pin = find(call->locale, name);
    if (!pin)
        return call_no_pin(call, name, "pin", err);
    pin_object(&call->out, call->locale, pin);
    return ERR_OK;
}
API_HANDLER(pin_get, 2, CALL_NEEDS_LOCALE)

static const struct write_kind put_write = {
    .change = WORLD_PUT_PIN,
    .method = "PUT",
    .below = "",
    .may_create = true,
    .ignores_key = true,
    .encode = encode,
};

static const struct write_kind delete_write = {
    .change = WORLD_DELETE_PIN,
    .method = "DELETE",
    .below = "",
    .ignores_key = true,
};

static const struct write_kind restore_write = {
    .change = WORLD_RESTORE,
    .method = "POST",
    .below = "/restore",
    .encode = write_encode_locale,
};

/* All three have no body. */
static enum err_code write_pin(struct call *call, const struct write_kind *kind, struct err *err)
{
    bool is_put = kind->change == WORLD_PUT_PIN;
    struct world_change change = {.layer_id = ""};

    if (call_param_id(call, 1, "pin", is_put ? ERR_BAD_INPUT : ERR_PIN_UNKNOWN, change.pin, err))
        return err->code;
    if (is_put && strspn(change.pin, "0123456789") == strlen(change.pin))
        return err_set_at(err, ERR_BAD_INPUT, "pin",
                          "a pin's name is no number: at=%s is a revision", change.pin);
    if (write_open(call, kind, &change, err) || options_open_query(call, NULL, err))
        return err->code;
    return write_submit(call, kind, &change, NULL, 0, err);
}

enum err_code pin_put_answer(struct call *call, struct err *err)
{
    return write_pin(call, &put_write, err);
}
API_HANDLER(pin_put, 2, CALL_NEEDS_NOTHING)

enum err_code pin_delete_answer(struct call *call, struct err *err)
{
    return write_pin(call, &delete_write, err);
}
API_HANDLER(pin_delete, 2, CALL_NEEDS_NOTHING)

enum err_code pin_restore_answer(struct call *call, struct err *err)
{
    return write_pin(call, &restore_write, err);
}
API_HANDLER(pin_restore, 2, CALL_NEEDS_NOTHING)
