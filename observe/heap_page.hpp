// Which calls have allocated the memory that the heap holds.
#pragma once

#include <string>
#include <string_view>
#include <weft/live_page.hpp>

namespace weft::observe {

// Answers from the program's allocator: from jemalloc and gperftools' tcmalloc, if their profiles
// are on. The query may say `format=pprof`, for the allocator's own text, which pprof reads.
// Otherwise it is a line for each stack, with the bytes that it holds. 503 with what to do if there
// is no such profile. Throws std::bad_alloc.
[[nodiscard]] live::Answer answer_heap(std::string_view query);

// Returns the folded stacks of a profile as both allocators write it. A sample of jemalloc counts
// for what was allocated between two samples, as pprof counts it. Throws std::bad_alloc.
[[nodiscard]] std::string fold_heap_profile(std::string_view profile);

}  // namespace weft::observe
