// Compresses responses for clients that request compression.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::http {

// Configures ServerOptions::compression. If a client accepts gzip, the server compresses responses
// of the listed `types`; Response::send() sends the shorter form. Parts of files, and responses
// with Content-Encoding, Content-Range, a digest or Cache-Control: no-transform, are unchanged. The
// server adds `Vary: Accept-Encoding` to responses that it compresses for some clients, and to
// parts of compressible files. Compressed responses have weak ETags. Compressing one takes 260 KiB.
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
