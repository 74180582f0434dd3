// Everything that weft offers.
#pragma once

#include <weft/channel.hpp>
#include <weft/condition_variable.hpp>
#include <weft/context.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/go.hpp>
#include <weft/mutex.hpp>
#include <weft/net/address.hpp>
#include <weft/net/tcp_listener.hpp>
#include <weft/net/tcp_stream.hpp>
#include <weft/ordered_stream.hpp>
#include <weft/parallel.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/shared_mutex.hpp>
#include <weft/spawn_options.hpp>
#include <weft/task_group.hpp>
#include <weft/this_fiber.hpp>
#include <weft/timer.hpp>
#include <weft/until.hpp>
#include <weft/wait_group.hpp>
