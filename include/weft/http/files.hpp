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
// If-Range (206, 416). Errors are 404 for a missing or special file, 403 for an unreadable file,
// 503 without a descriptor or memory, otherwise 500; other methods are 405. Without TLS the kernel
// sends the file; no worker waits for a disk (TcpStream::send_file). With TLS a worker reads the
// file and may wait.
// Context: the request's handler; parks.
// Errors: as Response::write().
// Throws: std::bad_alloc.
net::Result<void> send_file(Request& request, Response& response, const std::string& path,
                            const FileOptions& options = {});

// Makes a handler for the files below `folder` by Request::rest_of_path(), with index.html for
// folders. It serves a route such as "/files/{path...}" or a whole server. Neither dots nor links
// lead outside of `folder`; names that begin with a dot are not found.
// Context: plain value.
[[nodiscard]] Handler serve_folder(std::string folder, FileOptions options = {});

}  // namespace weft::http
