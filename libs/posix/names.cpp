// Lookups of hosts and services, which a helper thread makes. Functions to which the caller passes
// no buffer return storage of the fiber, valid until its next call to the same function.
#include <netdb.h>

#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "libs/posix/hooks.hpp"
#include "libs/posix/waiting.hpp"

namespace weft::posix {

namespace {

constinit Real<decltype(::gethostbyname)> real_gethostbyname("gethostbyname");
constinit Real<decltype(::gethostbyname2)> real_gethostbyname2("gethostbyname2");
constinit Real<decltype(::gethostbyaddr)> real_gethostbyaddr("gethostbyaddr");
constinit Real<decltype(::getservbyname)> real_getservbyname("getservbyname");
constinit Real<decltype(::getservbyport)> real_getservbyport("getservbyport");
constinit Real<decltype(::gethostbyname_r)> real_gethostbyname_r("gethostbyname_r");
constinit Real<decltype(::gethostbyname2_r)> real_gethostbyname2_r("gethostbyname2_r");
constinit Real<decltype(::gethostbyaddr_r)> real_gethostbyaddr_r("gethostbyaddr_r");
constinit Real<decltype(::getservbyname_r)> real_getservbyname_r("getservbyname_r");
constinit Real<decltype(::getservbyport_r)> real_getservbyport_r("getservbyport_r");

// The functions that have separate storage, as in the C library.
enum Function : std::size_t { kHost, kHost2, kAddress, kService, kPort, kFunctions };

// The storage of one call: an entry and the strings to which it refers.
template <class Entry>
struct Storage {
  Entry* entry;
  char* buffer;
  std::size_t size;
};

// Calls `find`, which takes a Storage and a pointer to the result, until the storage is large
// enough. Throws std::bad_alloc.
template <class Entry, class Find>
Entry* find_entry(FiberState& state, const Call& call, Function function, Find find) {
  state.found_names.resize(kFunctions);
  std::vector<char>& bytes = state.found_names[function];
  for (std::size_t size = 1024;; size *= 2) {
    if (bytes.size() < size) bytes.resize(size);
    auto* entry = std::construct_at(reinterpret_cast<Entry*>(bytes.data()));
    const Storage<Entry> storage{entry, bytes.data() + sizeof(Entry), bytes.size() - sizeof(Entry)};
    Entry* found = nullptr;
    if (on_helper(state, call, [&] { return find(storage, &found); }) != ERANGE) return found;
  }
}

// `find` also takes a pointer to the variable that replaces h_errno.
template <class Find>
hostent* find_host(FiberState& state, const Call& call, Function function, Find find) {
  int host_error = 0;
  hostent* found = nullptr;
  try {
    found = find_entry<hostent>(
        state, call, function, [&](const Storage<hostent>& storage, hostent** place) {
          return find(storage.entry, storage.buffer, storage.size, place, &host_error);
        });
  } catch (const std::bad_alloc&) {
    host_error = NETDB_INTERNAL;
    errno = ENOMEM;
  }
  if (host_error != 0) h_errno = host_error;
  return found;
}

template <class Find>
servent* find_service(FiberState& state, const Call& call, Function function, Find find) {
  try {
    return find_entry<servent>(state, call, function,
                               [&](const Storage<servent>& storage, servent** place) {
                                 return find(storage.entry, storage.buffer, storage.size, place);
                               });
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return nullptr;
  }
}

// Calls `plain` with a pointer that replaces h_errno. Until this fiber runs again, other fibers of
// the thread may change h_errno, to which `error` may point.
template <class Plain>
int find_host_here(const Call& call, int* error, Plain plain) {
  FiberState* state = current_scope();
  if (state == nullptr) return plain(error);
  int host_error = 0;
  const int result = on_helper(*state, call, [&] { return plain(&host_error); });
  *error = host_error;
  return result;
}

template <class Plain>
int find_service_here(const Call& call, Plain plain) {
  FiberState* state = current_scope();
  return state == nullptr ? plain() : on_helper(*state, call, plain);
}

}  // namespace

}  // namespace weft::posix

using namespace weft::posix;  // NOLINT: only the functions below follow.

extern "C" {

WEFT_POSIX_EXPORT hostent* gethostbyname(const char* name) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_gethostbyname(name);
  return find_host(*state, {"gethostbyname", __builtin_return_address(0)}, kHost,
                   [=](auto... storage) { return real_gethostbyname_r(name, storage...); });
}

WEFT_POSIX_EXPORT hostent* gethostbyname2(const char* name, int family) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_gethostbyname2(name, family);
  return find_host(
      *state, {"gethostbyname2", __builtin_return_address(0)}, kHost2,
      [=](auto... storage) { return real_gethostbyname2_r(name, family, storage...); });
}

WEFT_POSIX_EXPORT hostent* gethostbyaddr(const void* address, socklen_t length, int family) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_gethostbyaddr(address, length, family);
  return find_host(
      *state, {"gethostbyaddr", __builtin_return_address(0)}, kAddress,
      [=](auto... storage) { return real_gethostbyaddr_r(address, length, family, storage...); });
}

WEFT_POSIX_EXPORT servent* getservbyname(const char* name, const char* protocol) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_getservbyname(name, protocol);
  return find_service(
      *state, {"getservbyname", __builtin_return_address(0)}, kService,
      [=](auto... storage) { return real_getservbyname_r(name, protocol, storage...); });
}

WEFT_POSIX_EXPORT servent* getservbyport(int port, const char* protocol) {
  FiberState* state = current_scope();
  if (state == nullptr) return real_getservbyport(port, protocol);
  return find_service(
      *state, {"getservbyport", __builtin_return_address(0)}, kPort,
      [=](auto... storage) { return real_getservbyport_r(port, protocol, storage...); });
}

WEFT_POSIX_EXPORT int gethostbyname_r(const char* name, hostent* entry, char* buffer, size_t size,
                                      hostent** found, int* error) {
  return find_host_here({"gethostbyname_r", __builtin_return_address(0)}, error, [=](int* place) {
    return real_gethostbyname_r(name, entry, buffer, size, found, place);
  });
}

WEFT_POSIX_EXPORT int gethostbyname2_r(const char* name, int family, hostent* entry, char* buffer,
                                       size_t size, hostent** found, int* error) {
  return find_host_here({"gethostbyname2_r", __builtin_return_address(0)}, error, [=](int* place) {
    return real_gethostbyname2_r(name, family, entry, buffer, size, found, place);
  });
}

WEFT_POSIX_EXPORT int gethostbyaddr_r(const void* address, socklen_t length, int family,
                                      hostent* entry, char* buffer, size_t size, hostent** found,
                                      int* error) {
  return find_host_here({"gethostbyaddr_r", __builtin_return_address(0)}, error, [=](int* place) {
    return real_gethostbyaddr_r(address, length, family, entry, buffer, size, found, place);
  });
}

WEFT_POSIX_EXPORT int getservbyname_r(const char* name, const char* protocol, servent* entry,
                                      char* buffer, size_t size, servent** found) {
  return find_service_here({"getservbyname_r", __builtin_return_address(0)}, [=] {
    return real_getservbyname_r(name, protocol, entry, buffer, size, found);
  });
}

WEFT_POSIX_EXPORT int getservbyport_r(int port, const char* protocol, servent* entry, char* buffer,
                                      size_t size, servent** found) {
  return find_service_here({"getservbyport_r", __builtin_return_address(0)}, [=] {
    return real_getservbyport_r(port, protocol, entry, buffer, size, found);
  });
}

}  // extern "C"

WEFT_POSIX_HOOK(gethostbyname);
WEFT_POSIX_HOOK(gethostbyname2);
WEFT_POSIX_HOOK(gethostbyaddr);
WEFT_POSIX_HOOK(getservbyname);
WEFT_POSIX_HOOK(getservbyport);
WEFT_POSIX_HOOK(gethostbyname_r);
WEFT_POSIX_HOOK(gethostbyname2_r);
WEFT_POSIX_HOOK(gethostbyaddr_r);
WEFT_POSIX_HOOK(getservbyname_r);
WEFT_POSIX_HOOK(getservbyport_r);

namespace weft::posix {

std::span<const Hook> name_hooks() noexcept {
  static const std::array hooks{
      WEFT_POSIX_ENTRY(gethostbyname),    WEFT_POSIX_ENTRY(gethostbyname2),
      WEFT_POSIX_ENTRY(gethostbyaddr),    WEFT_POSIX_ENTRY(getservbyname),
      WEFT_POSIX_ENTRY(getservbyport),    WEFT_POSIX_ENTRY(gethostbyname_r),
      WEFT_POSIX_ENTRY(gethostbyname2_r), WEFT_POSIX_ENTRY(gethostbyaddr_r),
      WEFT_POSIX_ENTRY(getservbyname_r),  WEFT_POSIX_ENTRY(getservbyport_r)};
  return hooks;
}

}  // namespace weft::posix
