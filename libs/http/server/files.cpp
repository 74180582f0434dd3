#include <weft/http/files.hpp>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <weft/http/error.hpp>

#include "libs/http/coding/accept_encoding.hpp"
#include "libs/http/wire/http_date.hpp"

namespace weft::http {

namespace {

class ServedFile {
 public:
  // If `descriptor` is -1, the file could not be opened, and errno holds the reason.
  [[gnu::noinline]] explicit ServedFile(int descriptor) noexcept : descriptor_(descriptor) {
    if (descriptor_ >= 0 && ::fstat(descriptor_, &status_) == 0) return;
    error_ = errno;
    reset();
  }
  ~ServedFile() { reset(); }
  ServedFile(const ServedFile&) = delete;
  ServedFile& operator=(const ServedFile&) = delete;

  [[nodiscard]] bool is_regular() const noexcept {
    return descriptor_ >= 0 && S_ISREG(status_.st_mode);
  }
  [[nodiscard]] bool is_folder() const noexcept {
    return descriptor_ >= 0 && S_ISDIR(status_.st_mode);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  // Returns the status code to send if no regular file could be opened.
  [[nodiscard]] int status_instead() const noexcept {
    switch (error_) {
      case 0:
      case ENOENT:
      case ENOTDIR:
      case ENAMETOOLONG:
      case ELOOP:
      case EXDEV:  // The path leads out of the served folder.
      case ENXIO:
      case ENODEV:
        return 404;
      case EACCES:
        return 403;
      case EMFILE:
      case ENFILE:
      case ENOMEM:
        return 503;
      default:
        return 500;
    }
  }
  [[nodiscard]] std::uint64_t size() const noexcept {
    return static_cast<std::uint64_t>(status_.st_size);
  }
  [[nodiscard]] std::int64_t modified() const noexcept { return status_.st_mtim.tv_sec; }
  // Returns a tag made from the file's timestamp and size, which change with its content.
  [[nodiscard]] std::string tag() const {
    char text[64];
    const int size = std::snprintf(text, sizeof text, "\"%llx-%lx-%llx\"",
                                   static_cast<unsigned long long>(status_.st_mtim.tv_sec),
                                   static_cast<unsigned long>(status_.st_mtim.tv_nsec),
                                   static_cast<unsigned long long>(status_.st_size));
    return {text, static_cast<std::size_t>(size)};
  }

 private:
  void reset() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

  int descriptor_;
  int error_ = 0;
  struct stat status_ {};
};

std::string_view type_of(std::string_view name) noexcept {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".htm", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".txt", "text/plain; charset=utf-8"},
      {".md", "text/markdown; charset=utf-8"},
      {".xml", "application/xml"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".jpg", "image/jpeg"},
      {".jpeg", "image/jpeg"},
      {".gif", "image/gif"},
      {".webp", "image/webp"},
      {".ico", "image/x-icon"},
      {".pdf", "application/pdf"},
      {".wasm", "application/wasm"},
      {".woff2", "font/woff2"},
      {".mp4", "video/mp4"},
      {".webm", "video/webm"},
      {".mp3", "audio/mpeg"},
      {".gz", "application/gzip"},
      {".zip", "application/zip"},
  };
  for (const auto& [ending, type] : kTypes) {
    if (name.size() > ending.size() &&
        equal_tokens(name.substr(name.size() - ending.size()), ending)) {
      return type;
    }
  }
  return "application/octet-stream";
}

// Returns whether a header with this name has the value "*", or a list that contains one of `tags`.
// Returns std::nullopt if there is no such header.
std::optional<bool> find_tag(const Request& request, std::string_view name,
                             std::initializer_list<std::string_view> tags) {
  std::optional<bool> found;
  for (const Header& header : request.headers()) {
    if (!equal_tokens(header.name, name)) continue;
    found = found.value_or(false) || header.value == "*" ||
            std::any_of(tags.begin(), tags.end(),
                        [&](std::string_view tag) { return list_has(header.value, tag); });
  }
  return found;
}

std::optional<std::int64_t> time_in(const Request& request, std::string_view name) {
  const auto value = request.header(name);
  return value ? parse_http_date(*value) : std::nullopt;
}

// Checks the request's conditions (RFC 9110, 13.2.2). Returns 0 if the file is to be sent, and
// otherwise the status of the response to send instead.
int check_conditions(const Request& request, const ServedFile& file) {
  const std::string tag = file.tag();
  if (const auto wanted = find_tag(request, "if-match", {tag})) {
    if (!*wanted) return 412;
  } else if (const auto time = time_in(request, "if-unmodified-since")) {
    if (file.modified() > *time) return 412;
  }
  if (const auto known = find_tag(request, "if-none-match", {tag, "W/" + tag})) {
    return *known ? 304 : 0;
  }
  const auto time = time_in(request, "if-modified-since");
  return time && file.modified() <= *time ? 304 : 0;
}

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

enum class Asked : std::uint8_t { all, part, nothing };

// Determines the requested range. Selects the whole file for a list of ranges, for a malformed
// range, and for a range of another version of the file.
Asked find_range(const Request& request, const ServedFile& file, Range& range) {
  const auto text = request.header("range");
  constexpr std::string_view kUnit = "bytes=";
  if (!text || request.method() != "GET" || !equal_tokens(text->substr(0, kUnit.size()), kUnit)) {
    return Asked::all;
  }
  if (const auto version = request.header("if-range");
      version && *version != file.tag() && parse_http_date(*version) != file.modified()) {
    return Asked::all;
  }
  std::string_view specs = text->substr(kUnit.size());
  std::string_view spec;
  std::string_view another;
  if (!next_item(specs, spec) || next_item(specs, another)) return Asked::all;
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos) return Asked::all;
  const auto first = parse_number(spec.substr(0, dash));
  const auto last = parse_number(spec.substr(dash + 1));
  if (dash == 0) {
    if (!last) return Asked::all;
    if (*last == 0 || file.size() == 0) return Asked::nothing;
    range = {file.size() - std::min(*last, file.size()), file.size()};
    return Asked::part;
  }
  if (!first || (!last && dash + 1 != spec.size()) || (last && *last < *first)) return Asked::all;
  if (*first >= file.size()) return Asked::nothing;
  range = {*first, last ? std::min(*last, file.size() - 1) + 1 : file.size()};
  return Asked::part;
}

std::error_code answer_plainly(Response& response, int status) {
  response.set_status(status);
  response.add_header("Content-Type", "text/plain");
  if (status == 503) response.add_header("Retry-After", "1");
  return response.send(std::string(reason_phrase(status)) + "\n");
}

bool reads(const Request& request) noexcept {
  return request.method() == "GET" || request.method() == "HEAD";
}

std::error_code refuse_method(Response& response) {
  response.add_header("Allow", "GET, HEAD");
  return answer_plainly(response, 405);
}

std::error_code send_open_file(Request& request, Response& response, const ServedFile& file,
                               std::string_view name, const FileOptions& options) {
  if (!reads(request)) return refuse_method(response);
  if (!file.is_regular()) return answer_plainly(response, file.status_instead());
  response.add_header("ETag", file.tag());
  response.add_header("Last-Modified", format_http_date(file.modified()));
  if (!options.cache_control.empty()) response.add_header("Cache-Control", options.cache_control);
  const std::string_view type = options.content_type.empty() ? type_of(name) : options.content_type;
  const std::string size = std::to_string(file.size());
  if (const int status = check_conditions(request, file)) {
    response.set_status(status);
    if (status == 304) {  // These headers determine whether Vary is added.
      response.add_header("Content-Type", type);
      response.add_header("Content-Length", size);
    }
    return response.send({});
  }
  response.add_header("Accept-Ranges", "bytes");
  Range range{0, file.size()};
  switch (find_range(request, file, range)) {
    case Asked::nothing:
      response.add_header("Content-Range", "bytes */" + size);
      return answer_plainly(response, 416);
    case Asked::part:
      response.set_status(206);
      response.add_header("Content-Range", "bytes " + std::to_string(range.begin) + "-" +
                                               std::to_string(range.end - 1) + "/" + size);
      break;
    case Asked::all:
      break;
  }
  response.add_header("Content-Type", type);
  response.add_header("Content-Length", std::to_string(range.end - range.begin));
  return response.write_file(file.descriptor(), range.begin, range.end - range.begin);
}

// Opens a path below `folder`. Neither ".." nor a symbolic link can lead out of that folder.
// Returns -1, and sets errno, if the path cannot be opened.
int open_below(int folder, const std::string& path) noexcept {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

bool is_hidden(std::string_view path) noexcept {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

}  // namespace

net::Result<void> send_file(Request& request, Response& response, const std::string& path,
                            const FileOptions& options) {
  const ServedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return send_open_file(request, response, file, path, options);
}

Handler serve_folder(std::string folder, FileOptions options) {
  return [folder = std::move(folder), options = std::move(options)](Request& request,
                                                                    Response& response) {
    if (!reads(request)) {
      (void)refuse_method(response);
      return;
    }
    std::string path = request.rest_of_path();
    const bool is_name =
        path.find('\0') == std::string::npos && !is_hidden(path) && !path.starts_with('/');
    if (!is_name) {
      (void)answer_plainly(response, 404);
      return;
    }
    const ServedFile root(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (path.empty() || path.ends_with('/')) path += "index.html";
    if (!root.is_folder()) {
      (void)answer_plainly(response, root.status_instead());
      return;
    }
    const ServedFile file(open_below(root.descriptor(), path));
    if (file.is_folder()) {
      // Without the redirect, relative links in the folder's index would fail.
      response.set_status(301);
      std::string place = std::string(request.path()) + "/";
      if (!request.query().empty()) place.append(1, '?').append(request.query());
      response.add_header("Location", place);
      (void)response.send({});
      return;
    }
    (void)send_open_file(request, response, file, path, options);
  };
}

}  // namespace weft::http
