#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>

#include "bench/http_parsers/parsers.hpp"

namespace weft::bench {

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using Text = boost::beast::string_view;

class Parser : public http::basic_parser<true> {
 public:
  Views views;

 private:
  void add(Text text) { views.add(text.data(), text.size()); }
  void on_request_impl(http::verb, Text, Text target, int, error_code& error) override {
    add(target);
    error = {};
  }
  void on_field_impl(http::field, Text name, Text value, error_code& error) override {
    add(name);
    add(value);
    error = {};
  }
  void on_response_impl(int, Text, int, error_code&) override {}
  void on_header_impl(error_code& error) override { error = {}; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code& error) override {
    error = {};
  }
  std::size_t on_body_impl(Text, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, Text, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text, error_code&) override { return 0; }
  void on_finish_impl(error_code& error) override { error = {}; }
};

}  // namespace

unsigned parse_with_beast(std::string_view request, long times) {
  unsigned sum = 0;
  for (long i = 0; i < times; ++i) {
    Parser parser;
    error_code error;
    parser.put(boost::asio::const_buffer(request.data(), request.size()), error);
    if (error) return 0;
    sum += parser.views.count;
  }
  return sum;
}

}  // namespace weft::bench
