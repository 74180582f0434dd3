// Compresses answers for clients that request compression.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. The server sends answers of these types as gzip if the
// client's Accept-Encoding permits it, and adds `Vary: Accept-Encoding` to all these answers. The
// server does not change parts of files, or answers with Content-Encoding, Content-Range or
// Cache-Control: no-transform. A compressed answer's ETag becomes weak. A compressor uses about 260
// KiB while an answer is written.
struct Compression {
  // The server does not compress a body that is known to be smaller than this.
  std::size_t min_bytes = 1024;
  // The compression level, from 1 (fastest) to 9 (smallest output).
  int level = 5;
  // Content-Types: "text/plain" matches one type, "text/" a prefix, "+json" a suffix.
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
