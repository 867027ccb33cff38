#pragma once

#include <cstdint>
#include <string_view>

#include "io/line_reader.h"
#include "io/rows.h"

namespace sapwood::io {

struct XmcData {
  FeatureRows features;
  LabelRows labels;
  std::int64_t n_rows = 0;
  std::int64_t n_features = 0;
  std::int64_t n_labels = 0;
};

/// Reads the extreme classification repository's format, fed block by block: a line `n_rows n_features n_labels`,
/// then n_rows lines `label,label... index:value ...`. Labels and indices begin at 0.
class XmcParser {
 public:
  void feed(std::string_view block);
  [[nodiscard]] XmcData finish();
  [[nodiscard]] Position position() const noexcept { return lines_.position(); }

 private:
  void read_line(Line& line);
  void read_header(Line& line);
  void read_row(Line& line);
  [[nodiscard]] std::int64_t rows_read() const noexcept;

  LineReader lines_{'\n'};
  bool has_header_ = false;
  XmcData data_;
};

}  // namespace sapwood::io
