// Compresses answers for clients that request compression.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. If a client's Accept-Encoding permits it, the server
// compresses answers of the listed `types` with gzip. It adds `Vary: Accept-Encoding` to answers
// that it would compress for some client, and to partial files. It compresses neither partial
// files nor answers that have Content-Encoding, Content-Range or Cache-Control: no-transform. The
// ETag of a compressed answer becomes weak. A compressor uses about 260 KiB while it is in use.
struct Compression {
  // The server does not compress a body that is known to be smaller than this number of bytes.
  std::size_t min_bytes = 1024;
  // The compression level, from 1 (fastest) to 9 (smallest output).
  int level = 5;
  // Compressed Content-Types: "text/plain" matches one type, "text/" a prefix, "+json" a suffix.
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
