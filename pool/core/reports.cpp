// Reports task exceptions that no caller receives.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <weft/this_fiber.hpp>

#include "pool/core/reports.hpp"

namespace weft::pool {

namespace {

// Throws std::bad_alloc.
std::string line_about(std::string_view event, const std::string& pool,
                       const std::exception_ptr& exception) {
  std::string line = "weft: pool '" + pool + "': ";
  line.append(event).append(": ");
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& known) {
    line += known.what();
  } catch (...) {
    line += "not a std::exception";
  }
  return line;
}

// Returns whether the logger has accepted the line. If not, the caller must write it elsewhere.
bool was_logged(const PoolOptions& options, std::string_view line) noexcept {
  if (!options.logger) return false;
  try {
    options.logger(line);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void report(const PoolOptions& options, const std::exception_ptr& exception,
            const TaskInfo& task) noexcept {
  if (!options.on_exception) return log(options, "a task threw", exception);
  std::exception_ptr from_handler;
  try {
    options.on_exception(exception, task);
  } catch (...) {
    // The exception must not end the worker, and no caller can receive it. It is therefore logged.
    from_handler = std::current_exception();
  }
  if (from_handler) log(options, "on_exception threw", from_handler);
}

// Must not be called inside a catch block, because the logger may park.
void log(const PoolOptions& options, std::string_view event,
         const std::exception_ptr& exception) noexcept {
  std::string line;
  try {
    line = line_about(event, options.name, exception);
  } catch (...) {
    line.clear();  // No memory is available, so only the event is logged.
  }
  const std::string_view told = line.empty() ? event : std::string_view(line);
  if (was_logged(options, told)) return;
  // A single call writes the whole line, so that lines from several threads do not mix.
  std::fprintf(stderr, "%.*s\n", static_cast<int>(told.size()), told.data());
}

}  // namespace weft::pool
