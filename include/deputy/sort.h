// sort: sorting that can be stopped.
#pragma once
#include <deputy/arena.h>
#include <deputy/stop.h>

// As qsort, but what is sorted is at the place returned: p, or memory of the arena that may live as long.
// What is sorted already costs a look at each. When it was stopped the elements are all there in some order.
[[nodiscard]] void *sort_until(arena *a, void *p, size_t n, size_t size,
                               int (*cmp)(const void *x, const void *y), stop_sign *s);
