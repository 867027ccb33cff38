#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "io/number_text.h"
#include "io/parse_error.h"
#include "io/row_writer.h"
#include "io/svmlight_parser.h"
#include "io/xmc_parser.h"

using namespace sapwood::io;

namespace {

constexpr std::array<std::size_t, 5> block_sizes = {1, 2, 7, 4096, std::string::npos};

/// Feeds blocks that own their bytes, so that a sanitizer sees any read beyond them.
template <class Parser>
auto parse(Parser parser, std::string_view text, std::size_t block_size = std::string::npos) {
  while (!text.empty()) {
    const std::string_view next = text.substr(0, block_size);
    const std::vector<char> block(next.begin(), next.end());
    parser.feed({block.data(), block.size()});
    text.remove_prefix(block.size());
  }
  return parser.finish();
}

SvmlightData svmlight(std::string_view text, SvmlightOptions options = {}, std::size_t block_size = std::string::npos) {
  return parse(SvmlightParser(options), text, block_size);
}

XmcData xmc(std::string_view text, std::size_t block_size = std::string::npos) {
  return parse(XmcParser(), text, block_size);
}

template <class Parse>
void check_error(Parse&& parse_text, std::int64_t line, std::int64_t column, std::string_view message) {
  try {
    static_cast<void>(parse_text());
  } catch (const ParseError& error) {
    const bool has_message = std::string_view(error.what()).find(message) != message.npos;
    if (error.line() == line && error.column() == column && has_message) return;
    throw std::runtime_error("expected an error at " + std::to_string(line) + ":" + std::to_string(column) + ", got " +
                             std::to_string(error.line()) + ":" + std::to_string(error.column()) + " " + error.what());
  }
  throw std::runtime_error("expected an error: " + std::string(message));
}

bool same(const FeatureRows& a, const FeatureRows& b) {
  return a.values == b.values && a.indices == b.indices && a.indptr == b.indptr;
}

bool same(const LabelRows& a, const LabelRows& b) { return a.indices == b.indices && a.indptr == b.indptr; }

FeatureView view(const FeatureRows& rows) { return {rows.values, rows.indices, rows.indptr}; }

void check_float(const std::string& text) {
  const std::string line = text + "\n";
  const Decimal number = scan_decimal(line.c_str());
  CHECK(number.end == line.c_str() + text.size());
  const float expected = std::strtof(text.c_str(), nullptr);
  const auto value = to_float(number);
  CHECK(value.has_value() == std::isfinite(expected));
  if (value) CHECK(std::bit_cast<std::uint32_t>(*value) == std::bit_cast<std::uint32_t>(expected));
}

std::string random_decimal(std::mt19937& random) {
  const auto digits = [&random](std::size_t most) {
    std::string text;
    for (std::size_t n = random() % (most + 1); n > 0; --n) text.push_back(static_cast<char>('0' + random() % 10));
    return text;
  };
  std::string text = random() % 3 == 0 ? "-" : random() % 5 == 0 ? "+" : "";
  text += digits(12) + std::to_string(random() % 10);
  if (random() % 4 != 0) text += "." + digits(14);
  if (random() % 3 == 0) text += "e" + std::to_string(static_cast<int>(random() % 100) - 50);
  return text;
}

/// Text of the characters that parsers look at, and now and then any byte.
std::string random_text(std::mt19937& random) {
  constexpr std::string_view alphabet = "0123456789999  ::::,,..--+eE#\n\n\tqid:nainf";
  std::string text;
  for (std::size_t n = random() % 80; n > 0; --n) {
    text.push_back(random() % 50 == 0 ? static_cast<char>(random() % 256) : alphabet[random() % alphabet.size()]);
  }
  return text;
}

/// A valid text with a few bytes changed comes further than a random one.
std::string damaged(std::string text, std::mt19937& random) {
  for (std::size_t n = random() % 4; n > 0 && !text.empty(); --n) {
    const std::size_t where = random() % text.size();
    if (random() % 2 == 0) {
      text.erase(where, 1 + random() % 3);
    } else {
      text[where] = random_text(random).append("\n").front();
    }
  }
  return text;
}

/// Whether parsing ended in data or in a ParseError, the same for every block size.
template <class Parse>
void check_survives(Parse&& parse_blocks) {
  std::optional<std::string> first;
  for (const std::size_t size : block_sizes) {
    std::string outcome;
    try {
      const auto data = parse_blocks(size);
      CHECK(data.features.indices.size() == static_cast<std::size_t>(data.features.indptr.back()));
      for (const std::int32_t index : data.features.indices) CHECK(index >= 0 && index < data.n_features);
      for (const float value : data.features.values) outcome += std::to_string(value) + " ";
    } catch (const ParseError& error) {
      outcome = std::to_string(error.line()) + ":" + std::to_string(error.column()) + error.what();
    }
    if (!first) first = outcome;
    CHECK(*first == outcome);
  }
}

}  // namespace

TEST(floats_are_read_as_strtof_reads_them) {
  for (const char* text :
       {"0", "-0", "1", "+1", "1.", ".5", "-.5e1", "0.1", "1e10", "1E-10", "16777217", "16777219", "16777217.0000001",
        "0.000000000000000000000000000001", "3.4028235e38", "3.4028236e38", "-3.5e38", "1e39", "1e400", "1e-400",
        "1.17549435e-38", "1.1754942e-38", "1e-45", "7e-46", "7.1e-46", "1e-46", "0e999999999999999999", "-0e-5",
        "1e-99999999999999999999", "123456789012345678901234567890", "0.1234567890123456789012345678901234567890",
        "8388608.5", "8388609.5", "1.00000005960464477539062500", "1.00000005960464477539062501", "5e-324",
        "00000000000000000000000000001.5", "0.00000000000000000000000000000000000000000000000000001e53"}) {
    check_float(text);
  }
}

TEST(random_decimals_are_read_as_strtof_reads_them) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) check_float(random_decimal(random));
}

TEST(midpoints_of_floats_are_rounded_to_even) {
  std::mt19937 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const float low = std::bit_cast<float>(static_cast<std::uint32_t>(0x20000000 + random() % 0x30000000));
    const double middle = (double{low} + double{std::nextafter(low, INFINITY)}) / 2;
    std::array<char, 128> text{};
    for (const int digits : {15, 16, 17, 18, 30}) {
      std::snprintf(text.data(), text.size(), "%.*e", digits, middle);
      check_float(text.data());
    }
  }
}

TEST(what_is_no_number_is_not_read) {
  for (const char* text :
       {"\n", "-\n", "+\n", ".\n", "-.\n", "e5\n", "1e\n", "1e+\n", "1.5e-\n", "nan\n", "-inf\n", ":"}) {
    CHECK(scan_decimal(text).end == nullptr);
  }
}

TEST(written_numbers_are_read_back_the_same) {
  std::mt19937_64 random(3);
  std::array<char, max_number_length + 1> text{};
  for (int i = 0; i < 50'000; ++i) {
    const auto bits = random();
    const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(single)) {
      *write_number(text.data(), single) = '\n';
      const auto value = to_float(scan_decimal(text.data()));
      CHECK(value && std::bit_cast<std::uint32_t>(*value) == static_cast<std::uint32_t>(bits));
    }
    const auto real = std::bit_cast<double>(bits);
    if (std::isfinite(real)) {
      *write_number(text.data(), real) = '\n';
      const auto value = to_double(scan_decimal(text.data()));
      CHECK(value && std::bit_cast<std::uint64_t>(*value) == bits);
    }
  }
}

TEST(svmlight_rows_are_read) {
  const auto data = svmlight("3 1:0.5 4:2 # note\n\n# only a comment: \xc3\xa9\n-1.5 qid:7 2:1e1\r\n+2\t\n");
  CHECK(data.targets == std::vector<double>{3, -1.5, 2});
  CHECK(data.features.indices == std::vector<std::int32_t>{0, 3, 1});
  CHECK(data.features.values == std::vector<float>{0.5F, 2, 10});
  CHECK(data.features.indptr == std::vector<std::int64_t>{0, 2, 3, 3});
  CHECK(data.n_features == 4);
}

TEST(svmlight_labels_are_read) {
  const auto data = svmlight("3,1,3 1:1\n 2:1\n3:1\nqid:1 4:1\n0", {.multilabel = true});
  CHECK(data.labels.indices == std::vector<std::int32_t>{1, 3, 0});
  CHECK(data.labels.indptr == std::vector<std::int64_t>{0, 2, 2, 2, 2, 3});
  CHECK(data.n_labels == 4);
}

TEST(svmlight_base_is_found_or_told) {
  CHECK(svmlight("1 0:1 2:1\n").n_features == 3);
  CHECK(svmlight("1 1:1 2:1\n").n_features == 2);
  CHECK(svmlight("1 1:1 2:1\n", {.base = IndexBase::zero}).n_features == 3);
  CHECK(svmlight("1 1:1 2:1\n", {.n_features = 2}).n_features == 2);
  CHECK(svmlight("1\n").n_features == 0);
  CHECK(svmlight("1\n", {.n_features = 9}).n_features == 9);
}

TEST(unsorted_features_are_sorted) {
  const auto data = svmlight("1 9:9 2:2 5:5\n1 3:3\n");
  CHECK(data.features.indices == std::vector<std::int32_t>{1, 4, 8, 2});
  CHECK(data.features.values == std::vector<float>{2, 5, 9, 3});
}

TEST(xmc_rows_are_read) {
  const auto data = xmc("4 3 5\n4,0 0:1 2:0.25\n 1:3\n\n2\n\n \n");
  CHECK(data.features.indices == std::vector<std::int32_t>{0, 2, 1});
  CHECK(data.features.indptr == std::vector<std::int64_t>{0, 2, 3, 3, 3});
  CHECK(data.labels.indices == std::vector<std::int32_t>{0, 4, 2});
  CHECK(data.labels.indptr == std::vector<std::int64_t>{0, 2, 2, 2, 3});
  CHECK(data.n_features == 3 && data.n_labels == 5);
}

TEST(errors_tell_line_and_column) {
  const auto in_svmlight = [](std::string text, SvmlightOptions options = {}) {
    return [text, options] { return svmlight(text, options); };
  };
  check_error(in_svmlight("1 1:1\n2 2:x\n"), 2, 5, "expected a finite number, found 'x'");
  check_error(in_svmlight("1 1:nan\n"), 1, 5, "found 'nan'");
  check_error(in_svmlight("1 1:-inf\n"), 1, 5, "found '-inf'");
  check_error(in_svmlight("1 1:1e39\n"), 1, 5, "range of a float32");
  check_error(in_svmlight("1 1 2\n"), 1, 4, "expected ':'");
  check_error(in_svmlight("1 1:\n"), 1, 5, "found the end of the line");
  check_error(in_svmlight("1 1:2x\n"), 1, 6, "expected a blank after the value");
  check_error(in_svmlight("1 -3:1\n"), 1, 3, "non-negative feature index, found '-3:1'");
  check_error(in_svmlight("1 2147483647:1\n"), 1, 3, "at most 2147483646");
  check_error(in_svmlight("1 99999999999999999999999:1\n"), 1, 3, "at most 2147483646");
  check_error(in_svmlight("1 5:1 5:2\n"), 1, 7, "feature index 5 appears twice");
  check_error(in_svmlight("1 5:1 2:2 5:2\n"), 1, 11, "feature index 5 appears twice");
  check_error(in_svmlight("1 1:1\n\xff 1:1"), 2, 1, "byte 0xFF");
  check_error(in_svmlight(std::string("1 1:1\0\n", 7)), 1, 6, "byte 0x00");
  check_error(in_svmlight("1,2 1:1\n"), 1, 2, "multilabel=True");
  check_error(in_svmlight("1:1\n"), 1, 1, "no label");
  check_error(in_svmlight("nan 1:1\n"), 1, 1, "expected a finite label");
  check_error(in_svmlight("1e999 1:1\n"), 1, 1, "range of a float64");
  check_error(in_svmlight("1 qid:x 1:1\n"), 1, 7, "query id");
  check_error(in_svmlight(""), 1, 1, "no rows");
  check_error(in_svmlight("# nothing\n"), 2, 1, "no rows");
  check_error(in_svmlight("-1 1:1\n", {.multilabel = true}), 1, 1, "non-negative label");
  check_error(in_svmlight("1,\n", {.multilabel = true}), 1, 3, "non-negative label");
  check_error(in_svmlight("1 2:1 0:1\n", {.base = IndexBase::one}), 1, 7, "zero_based=True");
  check_error(in_svmlight("1 3:1 9:1\n", {.n_features = 8}), 1, 7, "beyond n_features=8");
  check_error(in_svmlight("1 8:1\n", {.base = IndexBase::zero, .n_features = 8}), 1, 3, "beyond n_features=8");
  check_error(in_svmlight("1 1:1\n1 8:1\n1 0:1\n", {.n_features = 8}), 2, 3, "beyond n_features=8");

  const auto in_xmc = [](std::string text) { return [text] { return xmc(text); }; };
  check_error(in_xmc(""), 1, 1, "empty");
  check_error(in_xmc("\n"), 1, 1, "number of rows");
  check_error(in_xmc("2 3\n"), 1, 4, "number of labels");
  check_error(in_xmc("2 3 4 5\n"), 1, 7, "end of the header");
  check_error(in_xmc("2 3,4\n"), 1, 4, "blank after a count");
  check_error(in_xmc("1 4294967296 4\n"), 1, 3, "at most 2147483647");
  check_error(in_xmc("2 3 4\n0 0:1\n"), 3, 1, "after 1 of the 2 rows");
  check_error(in_xmc("1 3 4\n0 0:1\n1 1:1\n"), 3, 1, "more than the 1");
  check_error(in_xmc("1 3 4\n0 0:1 3:1\n"), 2, 7, "beyond the 3 features");
  check_error(in_xmc("1 3 4\n0,4 0:1\n"), 2, 3, "label 4 is beyond the 4 labels");
  check_error(in_xmc("1 3 0\n0 0:1\n"), 2, 1, "label 0 is beyond the 0 labels");
  check_error(in_xmc("1 3 4\n0 0:1 # note\n"), 2, 7, "found '#'");
  check_error(in_xmc("1 3 4\n0; 0:1\n"), 2, 2, "blank after the labels");
  check_error(in_xmc("1 3 4\n 0 0:1\n"), 2, 3, "expected ':'");
}

TEST(block_boundaries_do_not_matter) {
  const std::string text = "3 1:0.5 4:2.25e-3 # note\n\n-1.5 qid:7 2:1e1 9:0.333\r\n2\n7 6:-4";
  const auto whole = svmlight(text);
  for (const std::size_t size : block_sizes) {
    const auto data = svmlight(text, {}, size);
    CHECK(same(data.features, whole.features) && data.targets == whole.targets);
  }
  const std::string rows = "3 30 20\n12,3 0:1.5 29:0.25\n 7:3\n4";
  for (const std::size_t size : block_sizes) {
    const auto data = xmc(rows, size);
    CHECK(same(data.features, xmc(rows).features) && same(data.labels, xmc(rows).labels));
  }
}

TEST(written_rows_are_read_back_the_same) {
  const auto data = xmc("4 9 9\n8,3 0:0.1 7:-2e-30\n 1:16777216 8:0\n\n5\n");
  std::string text = "4 9 9\n";
  CHECK(write_rows(text, LabelView{data.labels.indices, data.labels.indptr}, view(data.features), 0, 0) == 4);
  CHECK(text.starts_with("4 9 9\n3,8 0:0.1 7:-2e-30\n 1:"));
  CHECK(same(xmc(text).features, data.features) && same(xmc(text).labels, data.labels));

  const std::vector<double> targets = {-1, 0.1, 9007199254740992.0, 1e300};
  text.clear();
  CHECK(write_rows(text, targets, view(data.features), 0, 1) == 4);
  const auto again = svmlight(text, {.n_features = 9});
  CHECK(same(again.features, data.features) && again.targets == targets);
}

TEST(a_parser_that_has_finished_is_still_valid) {
  SvmlightParser parser({});
  for (int i = 0; i < 2; ++i) {
    parser.feed("1 1:2\n");
    CHECK(parser.finish().features.indptr == std::vector<std::int64_t>{0, 1});
  }
  CHECK_THROWS(parser.finish(), ParseError);
}

TEST(long_outputs_come_in_blocks) {
  FeatureRows rows;
  rows.indptr.resize(1'000'001);
  const std::vector<double> targets(1'000'000, 5);
  std::string all;
  std::int64_t row = 0;
  int n_blocks = 0;
  for (; row < 1'000'000; ++n_blocks) {
    std::string text;
    row = write_rows(text, targets, view(rows), row, 0);
    all += text;
  }
  CHECK(n_blocks == 2 && all.size() == 2'000'000);
}

TEST(rows_outside_the_arrays_are_refused) {
  const std::vector<double> targets = {1};
  std::string text;
  for (const std::vector<std::int64_t>& indptr : {std::vector<std::int64_t>{0, 5}, {-1, 1}, {1, 0}, {0, 1, 1}}) {
    const FeatureRows rows{{1}, {0}, indptr};
    CHECK_THROWS(write_rows(text, targets, view(rows), 0, 0), std::invalid_argument);
  }
  const FeatureRows uneven{{1, 2}, {0}, {0, 1}};
  CHECK_THROWS(write_rows(text, targets, view(uneven), 0, 0), std::invalid_argument);
  CHECK_THROWS(write_rows(text, targets, view({{1}, {0}, {0, 1}}), -1, 0), std::invalid_argument);
}

TEST(random_bytes_give_data_or_a_parse_error) {
  std::mt19937 random(4);
  const std::string valid_svmlight = "3 1:0.5 4:2.25e-3 # note\n\n-1.5 qid:7 2:1e1 9:0.333\r\n2\n7 6:-4 2:1\n";
  const std::string valid_xmc = "3 30 20\n12,3 0:1.5 29:0.25\n 7:3 2:1\n4\n";
  for (int i = 0; i < 4000; ++i) {
    const std::string text = i % 2 == 0 ? random_text(random) : damaged(valid_svmlight, random);
    const SvmlightOptions options{.base = static_cast<IndexBase>(random() % 3),
                                  .n_features = random() % 2 == 0 ? std::optional<std::int64_t>(9) : std::nullopt,
                                  .multilabel = random() % 2 == 0};
    check_survives([&](std::size_t size) { return svmlight(text, options, size); });
    const std::string rows = i % 2 == 0 ? "3 30 20\n" + random_text(random) : damaged(valid_xmc, random);
    check_survives([&](std::size_t size) { return xmc(rows, size); });
  }
}
