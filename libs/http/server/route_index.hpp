// Numbers the routes, so that tables of counts can be indexed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::http {

using RouteIndex = std::uint16_t;

inline constexpr RouteIndex kNoRoute = 0;      // No route of a router matches the request.
inline constexpr RouteIndex kOtherRoutes = 1;  // All routes beyond the size of the table.
inline constexpr std::size_t kMostRoutes = 256;

// Returns the number of a title such as "GET /users/{id}". The number is constant for the life of
// the process, and all routers share it. Throws std::bad_alloc.
[[nodiscard]] RouteIndex index_of_route(std::string_view title);
// Returns the title of the number; "none" for kNoRoute, and "other" for kOtherRoutes. Throws
// std::bad_alloc.
[[nodiscard]] std::string title_of_route(RouteIndex index);

}  // namespace weft::http
