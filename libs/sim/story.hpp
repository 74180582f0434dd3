// What happened in a run, as rows of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

namespace weft::sim {

// Keeps the last rows. A row is a moment, a host and a text; the table has a column for each host.
// No address, thread or real time is in it, so a seed gives the same table in every run.
class Story {
 public:
  explicit Story(std::size_t rows) : most_(rows) {}

  // `now` in nanoseconds since the beginning.
  void add(std::int64_t now, std::uint32_t host, std::string text);
  // `hosts` are the names, by number.
  [[nodiscard]] std::string table(std::span<const std::string> hosts) const;
  // The same in the Trace Event Format, which Perfetto and Chrome show.
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

// "12.345 678 s".
[[nodiscard]] std::string seconds_text(std::int64_t nanoseconds);

}  // namespace weft::sim
