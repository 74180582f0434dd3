// Reads the table of requests and their answers.
#pragma once

#include <string>
#include <vector>

namespace weft::test {

struct CorpusCase {
  std::vector<int> statuses;
  std::string bytes;
  int line;  // The line in the table.
};

// Returns every request that the lines of the table describe. Throws std::runtime_error that names
// a line.
[[nodiscard]] std::vector<CorpusCase> read_corpus();

}  // namespace weft::test
