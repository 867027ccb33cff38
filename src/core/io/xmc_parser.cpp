#include "io/xmc_parser.h"

#include <limits>
#include <string>
#include <utility>

#include "io/parse_error.h"

namespace sapwood::io {

void XmcParser::feed(std::string_view block) {
  lines_.feed(block, [this](Line& line) { read_line(line); });
}

std::int64_t XmcParser::rows_read() const noexcept {
  return static_cast<std::int64_t>(data_.features.indptr.size()) - 1;
}

void XmcParser::read_line(Line& line) {
  if (!has_header_) {
    read_header(line);
  } else if (rows_read() < data_.n_rows) {
    read_row(line);
  } else {
    line.skip_blanks();
    if (!line.at_end()) line.fail(line.at(), "a row more than the " + std::to_string(data_.n_rows) + " of the header");
  }
}

void XmcParser::read_header(Line& line) {
  const auto read_count = [&line](std::int64_t limit, const char* what) {
    line.skip_blanks();
    const std::int64_t count = line.read_integer(limit, what);
    line.expect_separator("a count of the header");
    return count;
  };
  data_.n_rows = read_count(std::numeric_limits<std::int64_t>::max(), "the header's number of rows");
  data_.n_features = read_count(max_index + 1, "the header's number of features");
  data_.n_labels = read_count(max_index + 1, "the header's number of labels");
  line.skip_blanks();
  if (!line.at_end()) line.fail_expecting(line.at(), "the end of the header after three counts");
  has_header_ = true;
}

void XmcParser::read_row(Line& line) {
  line.read_labels(data_.labels, data_.n_labels);
  line.read_features(data_.features);
  const auto& [values, indices, indptr] = data_.features;
  const bool is_empty = indptr[indptr.size() - 2] == indptr.back();
  if (!is_empty && indices.back() >= data_.n_features) {
    line.fail(line.find_feature(indices.back(), 1),
              "feature index " + std::to_string(indices.back()) + " is beyond the " +
                  std::to_string(data_.n_features) + " features of the header");
  }
}

XmcData XmcParser::finish() {
  lines_.finish([this](Line& line) { read_line(line); });
  const auto [line, column] = position();
  if (!has_header_) throw ParseError(line, column, "the file is empty: expected a header 'rows features labels'");
  if (rows_read() < data_.n_rows) {
    throw ParseError(line, column, "the file ends after " + std::to_string(rows_read()) + " of the " +
                                       std::to_string(data_.n_rows) + " rows of the header");
  }
  return std::exchange(data_, {});  // what is left is valid, not moved from
}

}  // namespace sapwood::io
