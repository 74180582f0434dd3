// Lists folders, and finds out which entries are regular files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace examples {

enum class Kind : std::uint8_t { file, folder, other };  // other: links, sockets, devices, pipes.
enum class Links : std::uint8_t { follow, refuse };

struct Entry {
  std::string path;
  Kind kind = Kind::other;
};

// Returns the kind of file that `path` names now. The file may disappear at any time.
[[nodiscard]] std::pair<Kind, std::error_code> kind_of(const std::string& path, Links links);

// Returns the entries except . and .. in no special order; after an error, the entries read until
// then.
[[nodiscard]] std::pair<std::vector<Entry>, std::error_code> entries_of(const std::string& folder);

// Raises the soft limit of open files to the hard limit; returns the new limit.
std::size_t raise_descriptor_limit();

}  // namespace examples
