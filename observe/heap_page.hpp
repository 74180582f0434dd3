// Shows which calls have allocated the memory that the heap holds.
#pragma once

#include <string>
#include <string_view>
#include <weft/live_page.hpp>

namespace weft::observe {

// Answers with the profile of the program's allocator, jemalloc or gperftools' tcmalloc: a line for
// each stack, with the bytes that it holds. If the query has `format=pprof`, the answer is the
// allocator's own text, which pprof reads. If profiles are off, the answer is 503, with
// instructions. Throws std::bad_alloc.
[[nodiscard]] live::Answer answer_heap(std::string_view query);

// Returns the folded stacks of a profile as both allocators write it. A sample of jemalloc counts
// as the bytes that were allocated between two samples, as in pprof. Throws std::bad_alloc.
[[nodiscard]] std::string fold_heap_profile(std::string_view profile);

}  // namespace weft::observe
