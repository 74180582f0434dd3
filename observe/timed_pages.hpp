// Pages that record what the program does for a while.
#pragma once

#include <functional>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/live_page.hpp>

namespace weft::observe {

// Parks the caller until the moment. Returns false if something ended the wait before.
using Wait = std::function<bool(Deadline)>;

// Returns whether the page of this path records.
[[nodiscard]] bool is_timed_page(std::string_view path) noexcept;

// Records for the time that the query names, `seconds=5`, and answers with what was recorded. It
// refuses a second recording of the same kind meanwhile by 409, and a bad query by 400.
// Throws what the recording throws.
[[nodiscard]] live::Answer answer_timed(std::string_view path, std::string_view query,
                                        const Wait& wait);

}  // namespace weft::observe
