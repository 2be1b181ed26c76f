/*
 * A fuzz target is one function, as libFuzzer calls it. Under config=fuzz clang's libFuzzer brings
 * the main(); elsewhere replay.c does, and runs the target over a committed corpus.
 */
#ifndef KOTA_TESTS_FUZZ_FUZZ_H
#define KOTA_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs the code under test on bytes[size]; returns 0; a finding aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
