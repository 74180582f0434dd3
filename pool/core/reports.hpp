// Reports task exceptions that no caller receives.
#pragma once

#include <exception>
#include <string_view>
#include <weft/pool_options.hpp>

namespace weft::pool {

// Passes the exception to the pool's handler, or to log() if there is none. May park.
void report(const PoolOptions& options, const std::exception_ptr& exception,
            const TaskInfo& task) noexcept;
// Passes a line about the exception to the pool's logger, or writes it to stderr. May park.
void log(const PoolOptions& options, std::string_view event,
         const std::exception_ptr& exception) noexcept;

}  // namespace weft::pool
