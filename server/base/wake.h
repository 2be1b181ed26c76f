/*
 * Before uv_async_send, once what the loop is to find has been stored.
 *
 * uv_async_send does nothing where a signal is pending already, and finds that by a relaxed load.
 * The loop takes the signal away and then looks. If the load comes before what was stored is to be
 * seen, which any processor may do after a plain store and ARM's after every one, the loop looks in
 * between and finds nothing, and then nobody wakes it. libuv leaves the order to its callers.
 */
#ifndef KOTA_BASE_WAKE_H
#define KOTA_BASE_WAKE_H

static inline void wake_fence(void)
{
    __sync_synchronize();
}

#endif
