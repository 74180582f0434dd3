// Answers with files.
#pragma once

#include <string>
#include <weft/http/server.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

struct FileOptions {
  // Empty: the type for the name's extension, or "application/octet-stream" if none is known.
  std::string content_type = {};
  // The Cache-Control header, such as "max-age=3600". Empty: no header.
  std::string cache_control = {};
};

// Answers GET or HEAD with a regular file, and adds ETag and Last-Modified. It supports
// If-None-Match, If-Modified-Since, If-Match and If-Unmodified-Since (304, 412), and Range and
// If-Range with a single range (206, 416). It answers 404 for a missing or special file, 403 for an
// unreadable file, 503 if descriptors or memory run out, 405 for another method, and 500 if opening
// fails otherwise. The kernel sends the file, so a worker rarely waits for a disk
// (TcpStream::send_file). But a worker opens the file and, with TLS or compression, reads it.
// Context: the request's handler; parks.
// Errors: the errors of Response::write_file().
// Throws: std::bad_alloc; std::invalid_argument if `options` has a value with control characters.
net::Result<void> send_file(Request& request, Response& response, const std::string& path,
                            const FileOptions& options = {});

// Returns a handler that serves the file Request::rest_of_path() below `folder`, for a route such
// as "/files/{path...}" or a whole server. For a folder, it redirects to path + "/", and sends
// index.html. Neither ".." nor a link leads outside `folder`; names with a leading dot get 404.
// Context: plain value.
[[nodiscard]] Handler serve_folder(std::string folder, FileOptions options = {});

}  // namespace weft::http
