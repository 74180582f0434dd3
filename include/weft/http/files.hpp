// Answers with files.
#pragma once

#include <string>
#include <weft/http/server.hpp>
#include <weft/net/result.hpp>

namespace weft::http {

struct FileOptions {
  // Empty: derived from the ending of the file's name, otherwise "application/octet-stream".
  std::string content_type = {};
  // Such as "max-age=3600". Empty: no such header.
  std::string cache_control = {};
};

// Answers GET or HEAD with a regular file, with ETag and Last-Modified. It honours If-None-Match,
// If-Modified-Since, If-Match and If-Unmodified-Since (304, 412), and one range with Range and
// If-Range (206, 416). 404: not there or no regular file; 403: not readable; 503: no descriptor or
// memory; 500: other errors; 405: other methods. Without TLS the kernel sends it, and no worker
// waits for a disk (TcpStream::send_file). With TLS the worker reads it and may wait.
// Context: the request's handler; parks.
// Errors: as Response::write().
// Throws: std::bad_alloc.
net::Result<void> send_file(Request& request, Response& response, const std::string& path,
                            const FileOptions& options = {});

// Makes a handler for the files below `folder` by Request::rest_of_path(), with index.html for
// folders. It serves a route such as "/files/{path...}" or a whole server. Neither dots nor links
// lead outside; names that begin with a dot are not found.
// Context: plain value.
[[nodiscard]] Handler serve_folder(std::string folder, FileOptions options = {});

}  // namespace weft::http
