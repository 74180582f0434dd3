#include <weft/net/unix_listener.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <weft/descriptor.hpp>

#include "net/accept.hpp"
#include "net/transfer.hpp"

namespace weft::net {

namespace {

// Removes the socket file of a server that has ended. Returns false for any other file.
bool remove_stale(const UnixAddress& address) {
  const std::string path(address.name());
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const CallResult opened = open_socket(AF_UNIX, SOCK_STREAM);
  if (opened.error != 0) return false;
  const Descriptor probe(static_cast<int>(opened.value));
  const CallResult answer = connect_to(probe.get(), system_form(address));
  return answer.error == ECONNREFUSED && ::unlink(path.c_str()) == 0;
}

}  // namespace

Result<UnixListener> UnixListener::listen(const UnixAddress& address,
                                          const UnixListenOptions& options) {
  auto [socket, error] = make_socket(AF_UNIX, SOCK_STREAM, [&](int descriptor) {
    CallResult result = bind_to(descriptor, system_form(address));
    if (result.error == EADDRINUSE && options.replace_stale && !address.is_abstract() &&
        remove_stale(address)) {
      result = bind_to(descriptor, system_form(address));
    }
    if (result.error == 0) result = start_listening(descriptor, options.backlog);
    return result;
  });
  return {.value = UnixListener(std::move(socket)), .error = error};
}

Result<UnixStream> UnixListener::accept(const Until& until) {
  auto [socket, error] = accept_patiently(socket_, until);
  return {.value = UnixStream(std::move(socket)), .error = error};
}

Result<UnixAddress> UnixListener::local_address() const noexcept {
  return address_of<UnixAddress>(socket_, &name_of);
}

}  // namespace weft::net
