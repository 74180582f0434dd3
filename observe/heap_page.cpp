#include "observe/heap_page.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/call_names.hpp"

namespace weft::observe {

namespace {

using live::Answer;

constexpr std::string_view kHeapText = "text/plain; charset=utf-8";

// The symbol may come with a library that was loaded before the program's own.
template <class Function>
Function* find_function(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

using Mallctl = int(const char* name, void* old, std::size_t* old_bytes, void* value,
                    std::size_t value_bytes);

// jemalloc writes the profile to a file that it opens by name: this one is in memory.
std::optional<std::string> read_jemalloc(Mallctl* mallctl) {
  bool is_on = false;
  std::size_t bytes = sizeof is_on;
  if (mallctl("opt.prof", &is_on, &bytes, nullptr, 0) != 0 || !is_on) return {};
  const int file = memfd_create("weft-heap", MFD_CLOEXEC);
  if (file < 0) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const char* name = path.c_str();
  std::optional<std::string> text;
  if (mallctl("prof.dump", nullptr, nullptr, static_cast<void*>(&name), sizeof name) == 0) {
    text.emplace();
    std::array<char, 4096> part{};
    off_t at = 0;
    for (ssize_t count = 0; (count = ::pread(file, part.data(), part.size(), at)) > 0;
         at += count) {
      text->append(part.data(), static_cast<std::size_t>(count));
    }
  }
  ::close(file);
  return text;
}

std::optional<std::string> read_tcmalloc() {
  auto* const is_on = find_function<int()>("IsHeapProfilerRunning");
  auto* const get = find_function<char*()>("GetHeapProfile");
  if (is_on == nullptr || get == nullptr || is_on() == 0) return {};
  const std::unique_ptr<char, decltype(&std::free)> text(get(), &std::free);
  if (text == nullptr) return {};
  return std::string(text.get());
}

std::optional<std::string> read_profile() {
  if (auto* const mallctl = find_function<Mallctl>("mallctl")) return read_jemalloc(mallctl);
  return read_tcmalloc();
}

// Skips blanks, colons and opening brackets at the beginning of `text`, and takes the number there.
std::uint64_t take_number(std::string_view& text, int base = 10) noexcept {
  const std::size_t blanks = text.find_first_not_of(" :[");
  text.remove_prefix(blanks == std::string_view::npos ? text.size() : blanks);
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  text.remove_prefix(error == std::errc() ? static_cast<std::size_t>(end - text.data())
                                          : text.size());
  return number;
}

std::string_view take_line(std::string_view& text) noexcept {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Estimates how many bytes the objects of a stack hold if one object was sampled for every `period`
// bytes.
std::uint64_t estimate(std::uint64_t objects, std::uint64_t bytes, std::uint64_t period) {
  if (objects == 0 || period <= 1) return bytes;
  const double average = static_cast<double>(bytes) / static_cast<double>(objects);
  const double seen = 1 - std::exp(-average / static_cast<double>(period));
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) / seen));
}

class Folder {
 public:
  void add(std::string_view addresses, std::uint64_t bytes) {
    std::vector<const void*> calls;
    while (!addresses.empty()) {
      const auto address = static_cast<std::uintptr_t>(take_number(addresses, 16));
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      if (address != 0) calls.push_back(reinterpret_cast<const void*>(address));
    }
    std::string line;
    for (std::size_t i = calls.size(); i-- > 0;) {
      line.append(names_.of(calls[i])).append(line.empty() && i == 0 ? "" : ";");
    }
    if (line.ends_with(';')) line.pop_back();
    if (bytes > 0 && !line.empty()) stacks_[std::move(line)] += bytes;
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& [stack, bytes] : stacks_) {
      text.append(stack).append(" ").append(std::to_string(bytes)).append("\n");
    }
    return text;
  }

 private:
  runtime::CallNames names_;
  std::map<std::string, std::uint64_t> stacks_;
};

}  // namespace

// jemalloc: `heap_v2/PERIOD`, then for each stack `@ ADDRESS...` and `t*: OBJECTS: BYTES [...]`.
// tcmalloc: `heap profile: ...`, then for each stack `OBJECTS: BYTES [...] @ ADDRESS...`.
std::string fold_heap_profile(std::string_view profile) {
  constexpr std::string_view kJemalloc = "heap_v2/";
  std::string_view first = take_line(profile);
  std::uint64_t period = 1;
  if (first.starts_with(kJemalloc)) {
    first.remove_prefix(kJemalloc.size());
    period = take_number(first);
  }
  Folder folder;
  std::string_view addresses;
  while (!profile.empty()) {
    std::string_view line = take_line(profile);
    if (line.starts_with("MAPPED_LIBRARIES")) break;
    if (line.starts_with("@")) {
      addresses = line.substr(1);
      continue;
    }
    std::string_view counts = line;
    if (const std::size_t all = line.find("t*:"); all != std::string_view::npos) {
      counts.remove_prefix(all + 3);
    } else if (const std::size_t at = line.find('@'); at != std::string_view::npos) {
      addresses = line.substr(at + 1);
    } else {
      continue;
    }
    const std::uint64_t objects = take_number(counts);
    folder.add(addresses, estimate(objects, take_number(counts), period));
    addresses = {};
  }
  return folder.text();
}

Answer answer_heap(std::string_view query) {
  const std::optional<std::string> profile = read_profile();
  if (!profile) {
    return {503, kHeapText,
            "the allocator has no profile; start the program with LD_PRELOAD=libjemalloc.so.2 and "
            "MALLOC_CONF=prof:true,lg_prof_sample:17, or with heaptrack\n"};
  }
  if (query == "format=pprof") return {200, kHeapText, *profile};
  if (!query.empty() && query != "format=folded") {
    return {400, kHeapText, "format must be folded or pprof\n"};
  }
  return {200, kHeapText, fold_heap_profile(*profile)};
}

}  // namespace weft::observe
