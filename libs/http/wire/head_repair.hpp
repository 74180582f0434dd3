// Repairs an invalid head from a server if the head has only one possible meaning.
#pragma once

#include <string>

namespace weft::http {

// Joins each continuation line to the line before it: two spaces replace the CRLF between them
// (obs-fold; RFC 9112, 5.2). Must be called only after HeadLines (for a head) or ChunkDecoder (for
// trailers) has checked the line ends.
void unfold(std::string& head) noexcept;

// Merges several equal values of Content-Length, in separate lines or in a list, into one value
// (RFC 9110, 8.6). Returns false, and leaves the head unchanged, if the values differ or a value is
// empty.
[[nodiscard]] bool merge_lengths(std::string& head);

}  // namespace weft::http
