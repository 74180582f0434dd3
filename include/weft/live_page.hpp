// Provides a page that shows the fibers, workers and pools of a program.
#pragma once

#include <string>
#include <string_view>
#include <weft/net/address.hpp>

// The page is for browsers, weft-top, Prometheus and curl. It only reads and records data.
// weft-http serves the page (<weft/http/live_page.hpp>); any other server can call answer().
// Throws: std::bad_alloc.
namespace weft::live {

// The default port of weft-top.
inline constexpr std::uint16_t kPort = 6470;

struct Answer {
  int status = 200;
  std::string_view content_type;
  std::string body;
};

// Answers a request for `target`, a path with or without a query:
//   /            the page, which requests data.json every second
//   /data.json   metrics, the longest requests, and the 100 largest groups of similar fibers
//   /metrics     for Prometheus
//   /fibers      all groups as text; /requests: the longest open requests as text
//   /fibers.json each fiber: weft::dump::write_json()
//   /leaks       growing groups in which at least 64 fibers wait for ten minutes or longer
//   /deadlocks   fibers that wait for each other: weft::dump::write_deadlocks()
//   /stacks      folded stacks of parked fibers; costs as much as weft::dump::write_folded()
//   /heap        folded stacks and the bytes that they have allocated and not freed, if the
//                allocator has profiles (jemalloc, tcmalloc); also with format=pprof
//   /trace?seconds=5  records a trace for that time, and returns the output of weft::trace::write()
//   /profile?seconds=5&format=folded  records weft::profile::processor(), also with format=pprof
//   /contention, /blocked  like /profile, but with weft::profile::contention() or blocked()
// Other paths get 404; a wrong `seconds` or `format` gets 400. If the data cannot be read, the
// status is 503, and the body gives the reason. Recordings take 0.001 to 60 seconds, 5 by default.
// A second recording of the same kind gets 409, as does /profile if other code handles SIGPROF. A
// recording gets 503 if the caller's weft::Context ends first.
// Context: fibers and plain threads; the call blocks the thread while it collects the data. A
// recording parks the caller.
[[nodiscard]] Answer answer(std::string_view target);
// Returns whether answer() makes a recording for `target`, which takes a long time.
// Context: fibers and plain threads; does not park.
[[nodiscard]] bool records(std::string_view target) noexcept;

// Selects the clients that may read the page, which reveals program details. Others get 403.
enum class Readers {
  // Clients with a loopback address. A request whose Host header names another machine is refused,
  // because a foreign web page may have made the browser send it.
  this_machine,
  everybody,
};
// Returns whether a client with the address `peer` may read the page. `host` is the request's
// Host header, or empty. Only localhost counts as a name of this machine.
// Context: fibers and plain threads; does not park.
[[nodiscard]] bool may_read(Readers readers, const net::Address& peer, std::string_view host);

}  // namespace weft::live
