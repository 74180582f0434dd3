// Pages that record what the program does for a while.
#pragma once

#include <string_view>
#include <weft/live_page.hpp>

#include "runtime/recording.hpp"

namespace weft::observe {

// Returns whether the page of this path records.
[[nodiscard]] bool is_timed_page(std::string_view path) noexcept;

// Records for the time that the query names, `seconds=5`, and answers with what was recorded. It
// refuses a second recording of the same kind meanwhile by 409, and a bad query by 400. `path` is
// that of a page which records. Throws what the recording throws.
[[nodiscard]] live::Answer answer_timed(std::string_view path, std::string_view query,
                                        const runtime::Wait& wait);

}  // namespace weft::observe
