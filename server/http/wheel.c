/*
 * A lazy timer wheel: see wheel.h.
 *
 * Each request moves its connection's deadline, nearly always to a later time; a heap of uv timers
 * would be re-sorted each time. Here the timer stays in its slot and only the number changes; when
 * the slot comes up and the deadline has moved on, the timer is put into the slot of the new one.
 * A deadline beyond the wheel's span goes into the farthest slot and is checked again there.
 *
 * A slot that comes up is first moved to a list of its own, so that callbacks may change the wheel.
 *
 * Source: G. Varghese, A. Lauck: Hashed and hierarchical timing wheels, 1987, scheme 6.
 */
#include "http/wheel.h"

#include <stddef.h>

static void ring_init(struct http_timer *head)
{
    head->previous = head->next = head;
}

static void ring_append(struct http_timer *head, struct http_timer *timer)
{
    timer->previous = head->previous;
    timer->next = head;
    head->previous->next = timer;
    head->previous = timer;
}

void http_wheel_init(struct http_wheel *wheel, uint64_t now_ms, uint64_t tick_ms)
{
    wheel->tick_ms = tick_ms;
    wheel->tick = now_ms / tick_ms;
    for (size_t i = 0; i < HTTP_WHEEL_SLOTS; i++)
        ring_init(&wheel->slots[i]);
}

static void insert(struct http_wheel *wheel, struct http_timer *timer)
{
    uint64_t tick = timer->deadline_ms / wheel->tick_ms + 1;

    if (tick <= wheel->tick)
        tick = wheel->tick + 1;
    if (tick >= wheel->tick + HTTP_WHEEL_SLOTS)
        tick = wheel->tick + HTTP_WHEEL_SLOTS - 1;
    timer->tick = tick;
    ring_append(&wheel->slots[tick % HTTP_WHEEL_SLOTS], timer);
}

void http_wheel_set(struct http_wheel *wheel, struct http_timer *timer, uint64_t deadline_ms)
{
    timer->deadline_ms = deadline_ms;
    if (deadline_ms == 0)
        return;
    if (timer->next) {
        if (timer->tick <= deadline_ms / wheel->tick_ms + 1)
            return;
        http_wheel_remove(timer);
    }
    insert(wheel, timer);
}

void http_wheel_remove(struct http_timer *timer)
{
    if (!timer->next)
        return;
    timer->previous->next = timer->next;
    timer->next->previous = timer->previous;
    timer->previous = timer->next = NULL;
}

static void handle_slot(struct http_wheel *wheel, struct http_timer *slot, uint64_t now_ms,
                        http_timer_expired expired)
{
    struct http_timer due;

    ring_init(&due);
    while (slot->next != slot) {
        struct http_timer *timer = slot->next;

        http_wheel_remove(timer);
        ring_append(&due, timer);
    }
    while (due.next != &due) {
        struct http_timer *timer = due.next;

        http_wheel_remove(timer);
        if (timer->deadline_ms == 0)
            continue;
        if (timer->deadline_ms > now_ms) {
            insert(wheel, timer);
            continue;
        }
        timer->deadline_ms = 0;
        expired(timer);
    }
}

void http_wheel_advance(struct http_wheel *wheel, uint64_t now_ms, http_timer_expired expired)
{
    uint64_t last = now_ms / wheel->tick_ms;

    if (last > wheel->tick + HTTP_WHEEL_SLOTS)
        wheel->tick = last - HTTP_WHEEL_SLOTS;
    while (wheel->tick < last) {
        wheel->tick++;
        handle_slot(wheel, &wheel->slots[wheel->tick % HTTP_WHEEL_SLOTS], now_ms, expired);
    }
}
