// Compressed answers for clients that request them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. The server sends answers of these types as gzip if the
// client's Accept-Encoding permits it, and adds `Vary: Accept-Encoding` to all of them. It does not
// change parts of files, or answers with Content-Encoding, Content-Range or Cache-Control:
// no-transform. A compressed answer's ETag becomes weak. A compressor uses about 260 KiB while an
// answer is written.
struct Compression {
  // The server sends a body unchanged if the body is known to be smaller.
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
