// What libraries besides the core add to the metrics and to the live page.
#pragma once

#include <iosfwd>
#include <string>

namespace weft::detail {

// What one library adds. It lives as long as the process.
struct LibraryMetrics {
  // Writes families in the text format of Prometheus, whose names no other library has.
  void (*write_prometheus)(std::ostream& out);
  // Returns a line for the live page; empty if there is nothing to show.
  std::string (*line)();
  const LibraryMetrics* next = nullptr;  // Written by add_library_metrics().
};

// Adds a library to all later metrics. Call it once for each.
void add_library_metrics(LibraryMetrics& library) noexcept;
// Returns the library that was added last; null if there is none.
[[nodiscard]] const LibraryMetrics* first_library_metrics() noexcept;

}  // namespace weft::detail
