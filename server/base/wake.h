/*
 * Before uv_async_send, after the data for the loop has been stored.
 *
 * uv_async_send does nothing where a signal is pending already, and finds that by a relaxed load.
 * The loop clears the signal and then reads the data. If the load comes before the stored data is
 * visible, which any processor may do after a plain store and ARM's after every one, the loop reads
 * in between and finds nothing, and no signal follows. libuv leaves the order to its callers.
 */
#ifndef KOTA_BASE_WAKE_H
#define KOTA_BASE_WAKE_H

static inline void wake_fence(void)
{
    __sync_synchronize();
}

#endif
