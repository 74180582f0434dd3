// What servers send in heads that is not as it should be, but can be read in one way only.
#pragma once

#include <string>

namespace weft::http {

// Puts blanks in the place of each line's end behind which the line goes on (obs-fold; RFC 9112,
// 5.2), in a head whose lines HeadLines has found.
void unfold(std::string& head) noexcept;

// Makes one Content-Length of several that say the same, in lines of their own or in a list
// (RFC 9110, 8.6). False: they differ, or one of them is empty; then the head is as it was.
[[nodiscard]] bool merge_lengths(std::string& head);

}  // namespace weft::http
