#include "bench/shared_lines/ledger.hpp"

#include <dlfcn.h>

#include <cxxabi.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "bench/shared_lines/counting_atomic.hpp"

namespace weft::counting {

namespace {

constexpr std::uintptr_t kLineBytes = 64;

struct SiteKey {
  const char* file;
  unsigned line;
  const void* returns_to;
  friend auto operator<=>(const SiteKey&, const SiteKey&) = default;
};

// The state of a line in a MESI protocol with unlimited caches: which cores have a copy, and
// whether a core that wrote has the only one.
struct LineState {
  Counts counts;
  std::uint64_t copies = 0;
  std::uint64_t users = 0;
  bool written = false;
  std::map<std::pair<std::uintptr_t, SiteKey>, std::uint64_t> uses;
};

struct Book {
  std::map<SiteKey, Counts> sites;
  std::unordered_map<std::uintptr_t, LineState> lines;
  std::uint64_t fences = 0;
};

std::atomic<bool> is_open{false};
std::atomic_flag is_locked = ATOMIC_FLAG_INIT;
std::unique_ptr<Book> book;

// Locks one entry. It does not use the library's mutex, whose accesses are counted.
class Guard {
 public:
  Guard() {
    while (is_locked.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Guard() { is_locked.clear(std::memory_order_release); }
};

std::uint64_t bit_of_this_thread() noexcept {
  static std::atomic<unsigned> threads{0};
  static thread_local const unsigned number = threads.fetch_add(1);
  return std::uint64_t{1} << (number % 64);
}

void count(Counts& counts, Access access, bool moves) {
  switch (access) {
    case Access::load:
      ++counts.loads;
      break;
    case Access::store:
      ++counts.stores;
      break;
    case Access::exchange:
      ++counts.exchanges;
      break;
  }
  if (moves) ++(access == Access::load ? counts.fetched : counts.taken);
}

// Returns whether the access has to wait for another core; the first access to a line never does.
bool move_line(LineState& line, Access access, std::uint64_t thread) {
  line.users |= thread;
  if (access == Access::load) {
    const bool moves = (line.copies & thread) == 0 && line.copies != 0 && line.written;
    line.copies |= thread;
    return moves;
  }
  const bool moves = (line.copies & ~thread) != 0;
  line.copies = thread;
  line.written = true;
  return moves;
}

std::string place_of(const SiteKey& site) {
  const char* name = std::strstr(site.file, "include/weft");
  if (name == nullptr) {
    name = site.file;
    while (std::strncmp(name, "../", 3) == 0) name += 3;
  }
  return std::string(name) + ":" + std::to_string(site.line);
}

std::string function_at(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_sname == nullptr) return "?";
  int status = 0;
  char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : info.dli_sname;
  std::free(readable);
  return name.substr(0, name.find('('));
}

}  // namespace

[[gnu::noinline]] void record(Access access, const void* address, const Where& where) noexcept {
  if (!is_open.load(std::memory_order_relaxed)) return;
  const std::uint64_t thread = bit_of_this_thread();
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const SiteKey site{where.file_name(), where.line(), __builtin_return_address(0)};
  const Guard guard;
  if (!is_open.load(std::memory_order_relaxed)) return;
  LineState& line = book->lines[place / kLineBytes];
  const bool moves = move_line(line, access, thread);
  count(line.counts, access, moves);
  count(book->sites[site], access, moves);
  ++line.uses[{place % kLineBytes, site}];
}

[[gnu::noinline]] void record_fence() noexcept {
  if (!is_open.load(std::memory_order_relaxed)) return;
  const Guard guard;
  ++book->fences;
}

void Ledger::start() {
  const Guard guard;
  book = std::make_unique<Book>();
  is_open.store(true);
}

void Ledger::stop() {
  const Guard guard;
  is_open.store(false);
}

Counts Ledger::total() {
  Counts sum;
  for (const auto& [site, counts] : book->sites) {
    sum.loads += counts.loads;
    sum.stores += counts.stores;
    sum.exchanges += counts.exchanges;
    sum.fetched += counts.fetched;
    sum.taken += counts.taken;
  }
  return sum;
}

std::uint64_t Ledger::writes_to_shared_lines() {
  std::uint64_t sum = 0;
  for (const auto& [address, line] : book->lines) {
    if (std::popcount(line.users) > 1) sum += line.counts.writes();
  }
  return sum;
}

std::uint64_t Ledger::fences() { return book->fences; }

// A function that was inlined in several places is a separate site in each of them.
std::vector<Site> Ledger::sites() {
  std::map<std::pair<std::string, std::string>, Counts> sums;
  for (const auto& [site, counts] : book->sites) {
    Counts& sum = sums[{place_of(site), function_at(site.returns_to)}];
    sum.loads += counts.loads;
    sum.stores += counts.stores;
    sum.exchanges += counts.exchanges;
    sum.fetched += counts.fetched;
    sum.taken += counts.taken;
  }
  std::vector<Site> sites;
  for (const auto& [names, counts] : sums) sites.push_back({names.first, names.second, counts});
  std::ranges::sort(sites, [](const Site& a, const Site& b) {
    return a.counts.writes() + a.counts.loads > b.counts.writes() + b.counts.loads;
  });
  return sites;
}

std::vector<LineUse> Ledger::lines() {
  std::vector<LineUse> lines;
  for (const auto& [address, line] : book->lines) {
    LineUse use{line.counts, static_cast<unsigned>(std::popcount(line.users)), {}};
    for (const auto& [key, uses] : line.uses) {
      std::string place = "+" + std::to_string(key.first) + " " + place_of(key.second);
      if (use.places.empty() || use.places.back() != place) use.places.push_back(place);
    }
    lines.push_back(std::move(use));
  }
  std::ranges::sort(lines, [](const LineUse& a, const LineUse& b) {
    return std::pair(a.counts.moves(), a.counts.writes()) >
           std::pair(b.counts.moves(), b.counts.writes());
  });
  return lines;
}

}  // namespace weft::counting
