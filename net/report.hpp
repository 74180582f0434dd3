// Reports exceptions of a server's handlers.
#pragma once

#include <exception>
#include <functional>

namespace weft::net {

// Calls `on_exception`, if it is not empty. If it is empty or throws, writes a line to stderr that
// begins with `whose`.
void report_exception(const std::function<void(std::exception_ptr)>& on_exception,
                      const std::exception_ptr& exception, const char* whose) noexcept;

}  // namespace weft::net
