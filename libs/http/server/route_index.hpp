// Assigns numbers to routes; the numbers are indexes into tables of counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::http {

using RouteIndex = std::uint16_t;

inline constexpr RouteIndex kNoRoute = 0;        // The number of a request that matches no route.
inline constexpr RouteIndex kOtherRoutes = 1;    // Shared by all routes without a number.
inline constexpr std::size_t kMostRoutes = 256;  // Including kNoRoute and kOtherRoutes.

// Returns the number of a title such as "GET /users/{id}". A title's number never changes, and is
// the same in all routers. Throws std::bad_alloc.
[[nodiscard]] RouteIndex index_of_route(std::string_view title);
// Returns the title with the number `index`: "none" for kNoRoute, and "other" for kOtherRoutes.
// Throws std::bad_alloc.
[[nodiscard]] std::string title_of_route(RouteIndex index);

}  // namespace weft::http
