// Reports exceptions that no caller waits for.
#pragma once

#include <exception>
#include <string_view>
#include <weft/pool_options.hpp>

namespace weft::pool {

// Gives the exception to the pool's handler. May park.
void report(const PoolOptions& options, const std::exception_ptr& exception,
            const TaskInfo& task) noexcept;
// Gives a line about it to the pool's logger, or to stderr. May park.
void log(const PoolOptions& options, std::string_view event,
         const std::exception_ptr& exception) noexcept;

}  // namespace weft::pool
