// Chooses which calls fail by chance, and how.
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "tests/faults/interpose.hpp"
#include "tests/support/random.hpp"

namespace weft::test {
namespace {

struct UsualFault {
  Call call;
  int error;
};
constexpr std::array kUsual = std::to_array<UsualFault>({
    {Call::allocate, ENOMEM},
    {Call::map, ENOMEM},
    {Call::advise, ENOMEM},
    {Call::protect, ENOMEM},
    {Call::start_thread, EAGAIN},
    {Call::futex_wait, EINTR},
    {Call::control_epoll, ENOSPC},
    {Call::control_epoll, ENOMEM},
    {Call::wait_epoll, EINTR},
    {Call::open_file, EMFILE},
    {Call::open_file, EINTR},
    {Call::read_file, EINTR},
    {Call::write_file, EINTR},
    {Call::close_file, EINTR},
    {Call::read_at, EIO},
    {Call::read_at, EINTR},
    {Call::read_at, EAGAIN},
    {Call::read_at, kShort},
    {Call::write_at, ENOSPC},
    {Call::write_at, EINTR},
    {Call::write_at, kShort},
    {Call::get_status, EIO},
    {Call::sync_file, EIO},
    {Call::rename_file, EIO},
    {Call::make_pipe, EMFILE},
    {Call::start_process, EAGAIN},
    {Call::open_process, EMFILE},
    {Call::look_up, -EAI_AGAIN},
    {Call::make_socket, EMFILE},
    {Call::accept_socket, EMFILE},
    {Call::accept_socket, ENOMEM},
    {Call::accept_socket, ECONNABORTED},
    {Call::accept_socket, EINTR},
    {Call::accept_socket, EAGAIN},
    {Call::connect_socket, ECONNREFUSED},
    {Call::connect_socket, EINTR},
    {Call::connect_socket, EADDRNOTAVAIL},
    {Call::set_option, ENOBUFS},
    {Call::receive, EINTR},
    {Call::receive, EAGAIN},
    {Call::receive, kShort},
    {Call::receive, ECONNRESET},
    {Call::send, EINTR},
    {Call::send, EAGAIN},
    {Call::send, kShort},
    {Call::send, EPIPE},
    {Call::receive_message, EAGAIN},
    {Call::receive_message, kShort},
    {Call::send_message, EAGAIN},
    {Call::send_message, kShort},
    {Call::send_message, EPIPE},
    {Call::shut_down, ENOTCONN},
    {Call::poll_socket, EINTR},
});

}  // namespace

int error_by_chance(Call call, std::uint64_t number, std::uint64_t one_in) noexcept {
  Random random(number);
  if (!random.one_in(one_in)) return 0;
  const auto is_of_call = [call](const UsualFault& usual) { return usual.call == call; };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(kUsual, is_of_call));
  if (count == 0) return 0;
  const auto* usual = std::ranges::find_if(kUsual, is_of_call);
  return usual[random.below(count)].error;
}

}  // namespace weft::test
