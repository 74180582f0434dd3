// Implements the functions of Answer that only compressed responses need.
#include <algorithm>
#include <string>

#include "libs/http/coding/accept_encoding.hpp"
#include "libs/http/server/answer.hpp"
#include "libs/http/server/server_connection.hpp"
#include "libs/http/server/server_core.hpp"
#include "libs/http/wire/header_names.hpp"

namespace weft::http {

namespace {

bool is_listed(std::string_view type, const std::vector<std::string>& types) noexcept {
  return std::any_of(types.begin(), types.end(), [type](std::string_view known) {
    if (known.ends_with('/')) return equal_tokens(type.substr(0, known.size()), known);
    if (known.starts_with('+') && type.size() > known.size()) {
      return equal_tokens(type.substr(type.size() - known.size()), known);
    }
    return equal_tokens(type, known);
  });
}

// Removes the first header from `fields`, and returns the header.
Header take_field(std::string_view& fields) noexcept {
  const std::size_t end = fields.find("\r\n");
  const std::string_view line = fields.substr(0, end);
  fields.remove_prefix(end + 2);
  const std::size_t colon = line.find(':');
  return {line.substr(0, colon), line.substr(colon + 2)};
}

}  // namespace

// Returns the value of the handler's first header with this name, as a view into fields_. Returns
// an empty string if no such header exists.
std::string_view Answer::field(std::string_view name) const noexcept {
  for (std::string_view rest = fields_; !rest.empty();) {
    const Header header = take_field(rest);
    if (equal_tokens(header.name, name)) return header.value;
  }
  return {};
}

// Returns whether the handler's headers forbid a transformation of the body, or contain its digest.
bool Answer::forbids_transform() const noexcept {
  for (std::string_view rest = fields_; !rest.empty();) {
    const Header header = take_field(rest);
    if (equal_tokens(header.name, "cache-control") && list_has(header.value, "no-transform")) {
      return true;
    }
    if (is_one_of(header.name, kDigests)) return true;
  }
  return false;
}

// Returns whether to compress this response, whose size may be unknown. For status 304, the result
// is the same as for the full response. Adds a Vary header for caches if the result depends on the
// client. For a part of a file, returns false but adds Vary, because the whole file may be
// compressed.
bool Answer::wants_code(std::optional<std::uint64_t> size) {
  const Compression& options = *connection_.server().options().compression;
  const bool is_part = status_.code == 206 || !field("content-range").empty();
  if (status_.code == 204 || status_.code == 205 || (size && *size < options.min_bytes && !is_part))
    return false;
  if (!field("content-encoding").empty() || forbids_transform()) return false;
  std::string_view type = field("content-type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  if (type.empty() || !is_listed(type, options.types)) return false;
  fields_ += "Vary: Accept-Encoding\r\n";
  return !is_part && accepts_gzip(head_.headers());
}

void Answer::announce_code() {
  coding_.is_on = true;
  if (status_.code != 304) fields_ += "Content-Encoding: gzip\r\n";
  // The compressed file differs from the original file, so the tag must be weak.
  const std::string_view tag = field("etag");
  if (tag.starts_with('"'))
    fields_.insert(static_cast<std::size_t>(tag.data() - fields_.data()), "W/");
}

// Compresses `body` into `coded`. Returns the body to send: the shorter of `body` and `coded`.
std::string_view Answer::code_all(std::string_view body, std::string& coded) {
  if (has_no_body()) {
    announce_code();
    return body;
  }
  const auto gzip = Gzip::make(connection_.server().options().compression->level);
  if (gzip == nullptr) return body;
  gzip->add(body, Gzip::Then::end, coded);
  if (coded.size() >= body.size()) return body;
  announce_code();
  return coded;
}

std::error_code Answer::write_coded(std::string_view part, Gzip::Then then) {
  constexpr std::size_t kPiece = 64 * 1024;  // Limits the memory for compressed bytes.
  std::string coded;
  do {
    const std::string_view piece = part.substr(0, kPiece);
    part.remove_prefix(piece.size());
    coded.clear();
    coding_.gzip->add(piece, part.empty() ? then : Gzip::Then::more, coded);
    coding_.size += coded.size();
    if (!coded.empty()) append_part(coded);
  } while (!part.empty() && !output_.error());
  return output_.flush();
}

}  // namespace weft::http
