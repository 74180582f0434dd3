// This file is part of the library in the copy that tools/lab/mutants/schemata.py makes.
#include "base/mutant.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace weft_mutant {

unsigned chosen = 0;
unsigned char* reached = nullptr;

namespace {

// Runs before other constructors. The processes that a test starts share the mapped file.
__attribute__((constructor(101))) void choose() {
  const char* number = std::getenv("WEFT_MUTANT");
  if (number != nullptr) chosen = static_cast<unsigned>(std::atoi(number));
  const char* path = std::getenv("WEFT_MUTANTS_REACHED");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* bytes = mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (bytes != MAP_FAILED) reached = static_cast<unsigned char*>(bytes);
}

}  // namespace
}  // namespace weft_mutant
