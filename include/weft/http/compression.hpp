// Compresses responses for clients that request compression.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. If a client's Accept-Encoding permits it, the server
// compresses responses of the listed `types` with gzip. If compression depends on the client, the
// server adds `Vary: Accept-Encoding`, even to parts of files. It does not compress parts of files,
// or responses with Content-Encoding, Content-Range or Cache-Control: no-transform. The ETag
// becomes weak when a response is compressed. Each compression uses about 260 KiB of memory.
struct Compression {
  // The server does not compress a body that is known to be smaller than this number of bytes.
  std::size_t min_bytes = 1024;
  // The compression level, from 1 (fastest) to 9 (smallest output).
  int level = 5;
  // The types to compress: "text/plain" is one type, "text/" is a prefix, and "+json" is a suffix.
  std::vector<std::string> types = {"text/",
                                    "application/json",
                                    "application/javascript",
                                    "application/xml",
                                    "application/wasm",
                                    "image/svg+xml",
                                    "+json",
                                    "+xml"};
};

}  // namespace weft::http
