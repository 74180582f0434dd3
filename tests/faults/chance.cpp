// Which calls fail by chance, and how.
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "tests/faults/interpose.hpp"

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

std::uint64_t scrambled(std::uint64_t number) noexcept {  // The end of SplitMix64.
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111ebU;
  return number ^ (number >> 31U);
}

}  // namespace

int error_by_chance(Call call, std::uint64_t seed, std::uint64_t number,
                    std::uint64_t one_in) noexcept {
  std::uint64_t random = scrambled(seed + number * 0x9e3779b97f4a7c15U);
  if (random % one_in != 0) return 0;
  random /= one_in;
  const auto is_of_call = [call](const UsualFault& usual) { return usual.call == call; };
  const auto count = static_cast<std::uint64_t>(std::ranges::count_if(kUsual, is_of_call));
  if (count == 0) return 0;
  const auto* usual = std::ranges::find_if(kUsual, is_of_call);
  return usual[random % count].error;
}

}  // namespace weft::test
