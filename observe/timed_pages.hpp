// Pages that record the program for a while.
#pragma once

#include <string_view>
#include <weft/live_page.hpp>

#include "runtime/recording.hpp"

namespace weft::observe {

// Returns whether the page of this path records.
[[nodiscard]] bool is_timed_page(std::string_view path) noexcept;

// Records for the time that the query names (`seconds=5`), and answers with the recording. It
// refuses a concurrent recording of the same kind by 409, and an invalid query by 400. `path` must
// be that of a page that records. Throws what the recording throws.
[[nodiscard]] live::Answer answer_timed(std::string_view path, std::string_view query,
                                        const runtime::Wait& wait);

}  // namespace weft::observe
