// The events of a run, as rows of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace weft::sim {

// Keeps the last rows. A row has a time, a host and a text; the table has a column for each host.
// The table has no address, thread or real time, so that a seed gives the same table in every run.
class Story {
 public:
  explicit Story(std::size_t rows) : most_(rows) {}

  // Adds a row. `now` is in nanoseconds since the beginning of the world.
  void add(std::int64_t now, std::uint32_t host, std::string text);
  // Returns the table. `hosts` are the names of the hosts by their numbers.
  [[nodiscard]] std::string table(std::span<const std::string> hosts) const;
  // Returns the same rows in the Trace Event Format, which Perfetto and Chrome show.
  [[nodiscard]] std::string trace(std::span<const std::string> hosts) const;

 private:
  struct Row {
    std::int64_t time;
    std::uint32_t host;
    std::string text;
  };

  const std::size_t most_;
  std::uint64_t dropped_ = 0;
  std::deque<Row> rows_;
};

// Returns a text such as "12.345 678 s".
[[nodiscard]] std::string seconds_text(std::int64_t nanoseconds);

}  // namespace weft::sim
