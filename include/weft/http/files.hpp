// Answering with files.
#pragma once

#include <string>
#include <system_error>
#include <weft/http/server.hpp>

namespace weft::http {

struct FileOptions {
  // Empty: by the ending of the file's name; "application/octet-stream" for an unknown one.
  std::string content_type = {};
  // "max-age=3600", say. Empty: no such header.
  std::string cache_control = {};
};

// Answers GET or HEAD with a regular file, with ETag and Last-Modified. Answers 304 and 412 where
// If-None-Match, If-Modified-Since, If-Match or If-Unmodified-Since say so, and one range of it
// (206, 416) where Range and If-Range do. 404 for what is not there or is no regular file, 403 for
// what may not be read, 503 without a descriptor or memory for it, 500 for other errors; 405 for
// other methods. Without TLS the kernel sends it from its cache, which no worker waits to be filled
// (TcpStream::send_file); with TLS the worker reads it, and may wait for a disk. Errors: as
// Response::write(). It is called by the request's handler, and parks. Throws std::bad_alloc;
// synchronizes with nothing.
std::error_code send_file(Request& request, Response& response, const std::string& path,
                          const FileOptions& options = {});

// For a route such as "/files/{path...}", whatever its parameter is called, or as the only handler
// of a server: the files below `folder` by Request::rest_of_path(), and of a folder its index.html.
// Nothing outside of it is reached, neither by dots nor by links; a name that begins with a dot is
// not found. Call it from anywhere; never parks. Throws std::bad_alloc; synchronizes with nothing.
[[nodiscard]] Handler serve_folder(std::string folder, FileOptions options = {});

}  // namespace weft::http
