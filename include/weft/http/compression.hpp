// Compressed answers for clients that request them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. Answers of these types are sent as gzip if the client's
// Accept-Encoding permits it, and all such answers have `Vary: Accept-Encoding`. Answers with a
// Content-Encoding or Content-Range, with Cache-Control: no-transform, and parts of files are
// unchanged. An ETag becomes weak. A compressor takes about 260 KiB while an answer is written.
struct Compression {
  // A body known to be smaller is sent unchanged.
  std::size_t min_bytes = 1024;
  // The level, from 1, the fastest, to 9, the smallest.
  int level = 5;
  // Content-Types: "text/plain" is one, "text/" a prefix, "+json" a suffix.
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
