#include "libs/posix/blocked_calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <weft/deadline.hpp>
#include <weft/detail/spin_lock.hpp>
#include <weft/posix.hpp>

#include "libs/posix/fiber_state.hpp"
#include "libs/posix/samples.hpp"

namespace weft::posix {

namespace {

struct Row {
  const void* from;
  const char* call;
  const char* reason;
  std::uint64_t count;
  std::int64_t total;    // Nanoseconds.
  std::int64_t longest;  // Nanoseconds.
};
// Entering a call allocates nothing, because the call may be made by an allocator. When all rows
// are in use, the last row collects all further calls.
struct Table {
  detail::SpinLock lock;
  std::array<Row, 256> rows WEFT_GUARDED_BY(lock){};
  std::size_t used WEFT_GUARDED_BY(lock) = 0;
};
constinit Table table;

Row& row_of(const Call& call, const char* reason) noexcept WEFT_REQUIRES(table.lock) {
  for (std::size_t i = 0; i < table.used; ++i) {
    Row& row = table.rows[i];
    if (row.from == call.from && row.call == call.name && row.reason == reason) return row;
  }
  if (table.used == table.rows.size()) {
    Row& last = table.rows.back();
    last.from = nullptr;
    last.call = "other calls";
    last.reason = "the table is full";
    return last;
  }
  Row& row = table.rows[table.used++];
  row.from = call.from;
  row.call = call.name;
  row.reason = reason;
  return row;
}

}  // namespace

std::string place_of(const void* address) {
  Dl_info info{};
  if (address == nullptr || ::dladdr(address, &info) == 0) return "unknown";
  if (info.dli_sname != nullptr) return info.dli_sname;
  std::array<char, 32> offset{};
  std::snprintf(offset.data(), offset.size(), "+0x%zx",
                static_cast<std::size_t>(static_cast<const char*>(address) -
                                         static_cast<const char*>(info.dli_fbase)));
  return std::string(info.dli_fname) + offset.data();
}

BlockedCall::BlockedCall(const Call& call, const char* reason) noexcept
    : call_(call), reason_(reason), begin_(Deadline::now_nanoseconds()), state_(current_scope()) {
  if (state_ != nullptr) state_->set_sampled(false);
}

BlockedCall::~BlockedCall() {
  const int error = errno;
  if (state_ != nullptr) state_->set_sampled(true);
  const std::int64_t took = Deadline::now_nanoseconds() - begin_;
  {
    const detail::SpinGuard guard(table.lock);
    Row& row = row_of(call_, reason_);
    ++row.count;
    row.total += took;
    row.longest = std::max(row.longest, took);
  }
  errno = error;
}

std::vector<BlockedCalls> report() {
  std::array<Row, std::tuple_size_v<decltype(table.rows)>> rows{};
  std::size_t used = 0;
  {
    const detail::SpinGuard guard(table.lock);
    rows = table.rows;
    used = table.used;
  }
  std::vector<BlockedCalls> calls;
  for (std::size_t i = 0; i < used; ++i) {
    const Row& row = rows[i];
    calls.push_back({row.call, row.reason, place_of(row.from), row.count,
                     std::chrono::nanoseconds(row.total), std::chrono::nanoseconds(row.longest)});
  }
  add_samples(calls);
  std::ranges::sort(calls, std::ranges::greater(), &BlockedCalls::total);
  return calls;
}

void forget_blocked_calls() noexcept { std::construct_at(&table.lock); }

}  // namespace weft::posix
