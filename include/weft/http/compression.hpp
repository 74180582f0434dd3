// Answers that are sent compressed to clients that ask for it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// For ServerOptions::compression. Answers of these types go out as gzip when a client's
// Accept-Encoding allows it, and all of them say `Vary: Accept-Encoding`. Left alone are answers
// that have a Content-Encoding or a Content-Range, whose Cache-Control says no-transform, and parts
// of files. An ETag becomes a weak one. A compressor takes about 260 KiB while an answer is
// written.
struct Compression {
  // A body that is known to be smaller is sent as it is.
  std::size_t min_bytes = 1024;
  // The level is from 1, the fastest, to 9, the smallest.
  int level = 5;
  // Of Content-Type: "text/plain" is one, "text/" all that begin so, "+json" all that end so.
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
