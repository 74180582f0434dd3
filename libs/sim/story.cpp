#include "libs/sim/story.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace weft::sim {

namespace {

constexpr std::size_t kLeastWidth = 8;
constexpr std::size_t kMostWidth = 36;
constexpr std::size_t kTimeWidth = 18;

void append_cell(std::string& text, std::string_view cell, std::size_t width) {
  text.append(" | ").append(cell.substr(0, width));
  text.append(width - std::min(width, cell.size()), ' ');
}

void end_line(std::string& text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text.append("\n");
}

void append_quoted(std::string& json, std::string_view text) {
  json.append("\"");
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') json.push_back('\\');
    json.push_back(static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter);
  }
  json.append("\"");
}

}  // namespace

std::string seconds_text(std::int64_t nanoseconds) {
  char text[48];
  const std::int64_t micros = nanoseconds / 1000;
  (void)std::snprintf(
      text, sizeof text, "%lld.%03lld %03lld s", static_cast<long long>(micros / 1'000'000),
      static_cast<long long>(micros / 1000 % 1000), static_cast<long long>(micros % 1000));
  return text;
}

void Story::add(std::int64_t now, std::uint32_t host, std::string text) {
  if (most_ == 0) return;
  if (rows_.size() == most_) {
    rows_.pop_front();
    ++dropped_;
  }
  rows_.push_back({now, host, std::move(text)});
}

std::string Story::table(std::span<const std::string> hosts) const {
  std::vector<std::size_t> widths(hosts.size(), kLeastWidth);
  for (std::size_t i = 0; i < hosts.size(); ++i) widths[i] = std::max(widths[i], hosts[i].size());
  for (const Row& row : rows_) {
    std::size_t& width = widths.at(row.host);
    width = std::clamp(row.text.size(), width, std::max(width, kMostWidth));
  }
  std::string text(kTimeWidth, ' ');
  for (std::size_t i = 0; i < hosts.size(); ++i) append_cell(text, hosts[i], widths[i]);
  end_line(text);
  if (dropped_ > 0) {
    text.append("  (").append(std::to_string(dropped_)).append(" rows before these)\n");
  }
  for (const Row& row : rows_) {
    // A text that is wider than its column continues on the next line.
    for (std::size_t at = 0; at == 0 || at < row.text.size(); at += widths[row.host]) {
      const std::string time = at == 0 ? seconds_text(row.time) : std::string();
      text.append(kTimeWidth - std::min(kTimeWidth, time.size()), ' ').append(time);
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        const std::string_view cell =
            i == row.host ? std::string_view(row.text).substr(at) : std::string_view();
        append_cell(text, cell, widths[i]);
      }
      end_line(text);
    }
  }
  return text;
}

std::string Story::trace(std::span<const std::string> hosts) const {
  std::string json("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    json.append(R"({"ph":"M","name":"process_name","pid":)").append(std::to_string(i));
    json.append(R"(,"args":{"name":)");
    append_quoted(json, hosts[i]);
    json.append("}},\n");
  }
  for (const Row& row : rows_) {
    json.append(R"({"ph":"i","s":"p","tid":0,"pid":)").append(std::to_string(row.host));
    json.append(R"(,"ts":)").append(std::to_string(row.time / 1000)).append(R"(,"name":)");
    append_quoted(json, row.text);
    json.append("},\n");
  }
  // The format permits no comma after the last event.
  json.erase(json.size() - 2, 1);
  return json.append("]}\n");
}

}  // namespace weft::sim
